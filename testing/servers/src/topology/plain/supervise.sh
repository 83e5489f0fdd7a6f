# Runs one server and outlives its harness by just long enough to clean up.
#
# Arguments: run directory, node directory, program, program arguments.
# Standard input: stays open as long as the harness lives. End of input means that the harness is
# gone, by whatever cause: the server is ended and the run directory removed. A line of input also
# ends the server if it runs; a line after that means that nothing is removed, because a successor
# takes over or because other servers still use the directory.
# Standard output: "pid N" at start, "exited CODE" when the server ends.

# The harness alone decides. A frozen server left behind by a dead harness makes the kernel send
# SIGHUP to the whole group, and a terminal's Ctrl-C must not end this script before its work.
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
