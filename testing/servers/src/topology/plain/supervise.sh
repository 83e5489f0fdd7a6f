# Runs one server and outlives its harness by just long enough to clean up.
#
# Arguments: run directory, node directory, program, program arguments.
# Standard input: stays open while the harness lives. End of input means that the harness is gone,
# and this script kills the server and removes the run directory. A line of input also kills the
# server if it runs. After another line nothing is removed, because a successor takes over or other
# servers still use the directory.
# Standard output: "pid N" at the start, "exited CODE" when the server ends.

# Only the harness decides. If a dead harness leaves a frozen server, the kernel sends SIGHUP to the
# whole group, and Ctrl-C in a terminal must not end this script before its work is done.
trap '' HUP INT TERM PIPE

run=$1
dir=$2
shift 2
exec 3<&0

"$@" </dev/null 3<&- >>"$dir/output.log" 2>&1 &
server=$!

(
    read -r _ <&3
    kill -9 "$server"
) </dev/null >/dev/null 2>&1 &
watcher=$!

echo "pid $server"
wait "$server"
code=$?

# Still our own child and not yet waited for, so the number cannot belong to anyone else.
kill -9 "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
echo "exited $code" 2>/dev/null

read -r _ <&3 || rm -rf -- "$run"
