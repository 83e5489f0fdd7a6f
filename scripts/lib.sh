# Helpers of the scripts here. Sourced, never run: it expects bash with `set -euo pipefail`.
#
# What a script may need is found, or installed where that is allowed:
#
#   ensure_rust      cargo and a C compiler
#   ensure_git       git
#   ensure_server    a redis-server or valkey-server program    -> SERVER
#   ensure_redis_cli a redis-cli or valkey-cli
#   ensure_engine    a container engine that answers
#   ensure_jdk       a Java compiler and Maven, for Redisson
#   ensure_redis_py  a Python that has redis-py
#   ensure_pip       a Python that has pip, for other libraries of Python
#   ensure_node      Node and npm, for node-redlock and others
#   ensure_go        Go, for redsync
#   ensure_postgres  the server programs of PostgreSQL
#   ensure_clock_library  libfaketime, for servers whose clock can be set
#   ensure_images    the images of the pod provider
#   build_harness    locktopus-bench, built for release         -> PROGRAM
#   harness_help     the help of a script and, if it is built, of locktopus-bench
#   build_program    a program, built as scripts/test does      -> PROGRAM
#
# An `ensure_*` function that cannot help returns 1 and leaves the reason in WHY; its caller
# decides whether that is an error. Packages are installed only by apt-get, only as root or
# through a sudo that asks for no password, and not at all if LOCKTOPUS_NO_INSTALL is set.
# Nothing here reads from the terminal.
# shellcheck shell=bash

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
readonly ROOT
readonly SERVER_IMAGES=(redis:7.0 redis:8.0 valkey/valkey:8.1 valkey/valkey:9.1)
readonly HELPER_IMAGE=locktopus/nft:1
# The programs that tests start and a bare Debian lacks, each behind the function that installs it.
# `lib/NAME` is a folder in /usr/lib. In CI the tests find no other program: see confine_tests in
# scripts/test.
# shellcheck disable=SC2034 # for scripts that source this
readonly TEST_TOOLS=(
    'ensure_rust cargo rustc rustdoc cc gcc ld as ar'
    'ensure_git git'
    'ensure_server redis-server valkey-server'
    'ensure_redis_cli redis-cli valkey-cli'
    'ensure_engine docker'
    'ensure_jdk java javac mvn'
    'ensure_clock_library lib/faketime'
    'ensure_redis_py python3'
    'ensure_pip python3'
    'ensure_node node npm'
    'ensure_go go'
)
# The same for the tests of examples/recipes, which run at night.
# shellcheck disable=SC2034 # .ci/check-decisions reads it
readonly RECIPE_TOOLS=('ensure_postgres lib/postgresql')

SERVER=
WHY=
EXIT_ACTIONS=()

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
    warn "$*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether this runs in CI, where something missing is a failure and not a reason to skip.
in_ci() { [ -n "${CI:-}" ] && [ "$CI" != false ]; }

# Whether nothing may be left out, not even what could not be downloaded: at night. For each change a registry that does not
# answer is no fault of what is checked.
all_required() { [ -n "${LOCKTOPUS_REQUIRE_ALL:-}" ]; }

# Says that something was left out because it could not be downloaded.
not_checked() {
    ! all_required || die "LOCKTOPUS_REQUIRE_ALL is set, and this cannot be checked: $*"
    say "NOT CHECKED: $*"
}

# The comment at the top of the script itself, as help.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# Runs a command when the script ends, however it ends; the last one registered runs first.
at_exit() {
    EXIT_ACTIONS=("$*" ${EXIT_ACTIONS[@]+"${EXIT_ACTIONS[@]}"})
    trap run_exit_actions EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

run_exit_actions() {
    local status=$? action
    trap '' HUP INT TERM
    for action in ${EXIT_ACTIONS[@]+"${EXIT_ACTIONS[@]}"}; do
        $action || true
    done
    exit "$status"
}

# A directory for this run, removed at the end. Called plainly, never in $(...).
make_scratch() {
    [ -n "${SCRATCH:-}" ] && return
    SCRATCH=$(mktemp -d)
    at_exit remove_scratch
}

remove_scratch() { rm -rf -- "$SCRATCH"; }

is_root() { [ "$(id -u)" = 0 ]; }

# Whether commands may be run as root without a question.
can_be_root() { is_root || { have sudo && sudo -n true 2>/dev/null; }; }

as_root() {
    if is_root; then
        "$@"
    else
        sudo -n "$@"
    fi
}

# --- Packages ---------------------------------------------------------------------------------

# Whether packages may be installed here.
may_install() {
    if [ -n "${LOCKTOPUS_NO_INSTALL:-}" ]; then
        WHY='LOCKTOPUS_NO_INSTALL is set'
    elif ! have apt-get; then
        WHY='this system has no apt-get'
    elif ! can_be_root; then
        WHY='this is neither root nor a user whose sudo asks for no password'
    else
        return 0
    fi
    return 1
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

# Installs packages. What they bring is not started: Debian's servers would occupy their usual ports, and
# starting the engine fails the installation where there is no init system.
install_packages() {
    may_install || return
    say "installing from the system's packages: $*"
    forbid_servers
    # Lists that are missing or old are fetched once, and then it is tried again.
    if ! apt install --yes --no-install-recommends "$@" >/dev/null 2>&1; then
        apt update || warn 'apt-get update failed'
        if ! apt install --yes --no-install-recommends "$@" >/dev/null; then
            allow_servers
            WHY="apt-get could not install $*"
            return 1
        fi
    fi
    allow_servers
}

# Debian asks this program before a package starts its server. One that is there is left alone.
readonly POLICY=/usr/sbin/policy-rc.d
POLICY_IS_OURS=

forbid_servers() {
    [ -e "$POLICY" ] && return
    # shellcheck disable=SC2016 # the shell that runs it expands it
    printf '%s\n' '#!/bin/sh' 'case $1 in redis* | valkey* | postgresql* | docker* | containerd* | prometheus*) exit 101 ;; esac' |
        as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
    POLICY_IS_OURS=yes
    at_exit allow_servers
}

allow_servers() {
    [ -z "$POLICY_IS_OURS" ] || as_root rm -f -- "$POLICY"
    POLICY_IS_OURS=
}

# The programs of a freshly installed Debian, one path a line.
bare_programs() {
    dpkg-query --show --showformat '${Essential} ${Priority} ${Package}\n' |
        awk '$1 == "yes" || $2 == "required" { print $3 }' | xargs dpkg-query --listfiles |
        grep -E '^(/usr)?/s?bin/[^/]+$'
    # These two are links that packages choose when they are installed.
    type -P awk which
}

# --- Rust -------------------------------------------------------------------------------------

ensure_rust() {
    have cargo || PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    have cargo || die 'cargo is missing: install Rust with rustup and run this again'
    have cc || install_packages gcc libc6-dev ||
        die "a C compiler (cc) is missing and cannot be installed: $WHY"
}

ensure_git() {
    have git && return
    install_packages git || return
    have git || {
        WHY='no git after installing it'
        return 1
    }
}

# Builds a program of this workspace, as in `build_program --bin NAME`, and leaves its path in PROGRAM. Of the same packages and
# features as in scripts/test: any other selection would build what they depend on once more. So there is an example beside it:
# without one, cargo leaves out the features that only tests need, of tokio and so of nearly everything.
build_program() {
    make_scratch
    local arguments=(--workspace --all-features --message-format json-render-diagnostics --example conformance_table)
    ! in_ci || arguments+=(--locked)
    (cd "$ROOT" && cargo build --quiet "${arguments[@]}" "$@" >"$SCRATCH/program.json") || die "$* does not build"
    PROGRAM=$(sed -n "s/.*\"executable\":\"\([^\"]*\/$2\)\".*/\1/p" "$SCRATCH/program.json" | tail -n 1)
    [ -x "$PROGRAM" ] || die "cargo did not say where it put $2"
}

# What is left of the last build, and so why there is something to build.
why_to_build() {
    local program=$1 changed
    if [ ! -x "$program" ]; then
        say 'there is no program yet: it and everything it needs is built, some minutes on a machine with two cores'
        return
    fi
    # Cargo leaves the list of sources beside the program.
    changed=$({ sed -n 's/^[^:]*: //p' "${program}.d" 2>/dev/null || true; } | tr ' ' '\n' |
        while IFS= read -r file; do [ -z "$file" ] || [ ! "$file" -nt "$program" ] || printf '%s\n' "${file#"$ROOT"/}"; done)
    if [ -z "$changed" ]; then
        say 'no source has changed since the last build'
    else
        say "sources have changed since the last build: $(head -n 1 <<<"$changed")$(more_than_one "$changed"); what needs them is built again"
    fi
}

more_than_one() {
    local lines
    lines=$(grep -c . <<<"$1")
    [ "$lines" -lt 2 ] || printf ' and %s more' "$((lines - 1))"
}

# The help of a script, and behind it that of the command $1 of locktopus-bench, if that is built: whoever asks for help has not
# asked for minutes of compiling.
harness_help() {
    local program=${CARGO_TARGET_DIR:-$ROOT/target}/release/locktopus-bench
    usage
    printf '\n'
    if [ -x "$program" ]; then
        "$program" "$1" --help
    else
        say "The options of \`locktopus-bench $1\`, which is not built yet, after some minutes of building:"
        say "  cargo run --release --package bench-harness --bin locktopus-bench -- $1 --help"
    fi
}

# Builds the harness for this provider and these options, and leaves the program's path in PROGRAM. A container client and
# certificates are a third of what there is to build, and are left out where nothing asks for them. The HTML report is built always:
# it is what the harness is run for. One TLS library stays: rslock turns it on together with tokio (its feature `tokio-comp`).
build_harness() {
    local messages features=peers why='for servers as processes; without the container client and TLS, which nothing here asks for'
    if [ "${1:-}" = pod ]; then
        features=peers,pod,tls why='with the container client and TLS, for servers in containers'
    else
        case "$*" in *tls* | *rediss* | *valkeys*) features=peers,tls why='with TLS, without the container client' ;; esac
    fi
    make_scratch
    messages=$SCRATCH/build.json
    say "building locktopus-bench, $why"
    say '  a release build: what a debug build measures means nothing'
    say "  $(why_to_build "${CARGO_TARGET_DIR:-$ROOT/target}/release/locktopus-bench")"
    local began=$SECONDS
    # In the workspace, because rust-toolchain.toml counts for the directory that cargo runs in.
    (cd "$ROOT" && cargo build --release --package bench-harness --bin locktopus-bench \
        --no-default-features --features "$features" --message-format json-render-diagnostics >"$messages")
    PROGRAM=$(sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$messages" | tail -n 1)
    [ -x "$PROGRAM" ] || die 'cargo did not say where it put locktopus-bench'
    local built
    built=$(grep -c '"fresh":false' "$messages" || true)
    say "  $built packages built in $(((SECONDS - began) / 60)) m $(((SECONDS - began) % 60)) s: $PROGRAM"
}

# --- Servers ----------------------------------------------------------------------------------

# The server program: the one asked for, else the first one found. Empty if there is none.
find_server() {
    local name dir
    if [ -n "${LOCKTOPUS_SERVER_BIN:-}" ]; then
        say "$LOCKTOPUS_SERVER_BIN"
        return
    fi
    for name in redis-server valkey-server; do
        if have "$name"; then
            command -v "$name"
            return
        fi
    done
    # Not everybody's path has the directories of the system's packages.
    for name in redis-server valkey-server; do
        for dir in /usr/bin /usr/local/bin /usr/sbin; do
            if [ -x "$dir/$name" ]; then
                say "$dir/$name"
                return
            fi
        done
    done
}

# A Java compiler and Maven: what the Redisson peer is built with.
ensure_jdk() {
    have javac && have mvn && return
    install_packages default-jdk-headless maven || return
    have javac && have mvn || {
        WHY='no Java compiler or no Maven after installing them'
        return 1
    }
}

has_redis_py() {
    local python
    for python in ${LOCKTOPUS_PYTHON:-python3 /usr/bin/python3}; do
        ! "$python" -c 'import redis.lock' 2>/dev/null || return 0
    done
    return 1
}

# Of the system's packages, for the system's Python, which need not be the first one in the path.
ensure_redis_py() {
    has_redis_py && return
    install_packages python3-redis || return
    has_redis_py || {
        WHY='no Python has redis-py after installing it'
        return 1
    }
}

has_pip() {
    local python
    for python in ${LOCKTOPUS_PYTHON:-python3 /usr/bin/python3}; do
        ! "$python" -m pip --version >/dev/null 2>&1 || return 0
    done
    return 1
}

ensure_pip() {
    has_pip && return
    install_packages python3-pip || return
    has_pip || {
        WHY='no Python has pip after installing it'
        return 1
    }
}

# What is installed with pip or npm and built with Go is pinned in testing/suite/neighbours.
ensure_node() {
    have node && have npm && return
    install_packages nodejs npm || return
    have node && have npm || {
        WHY='no Node or no npm after installing them'
        return 1
    }
}

ensure_go() {
    # Not everybody's path has where Go's own installation is put.
    have go || [ ! -x /usr/local/go/bin/go ] || PATH=$PATH:/usr/local/go/bin
    have go || install_packages golang-go || return
    have go || {
        WHY='no Go after installing it'
        return 1
    }
    # What go.mod asks for. Debian 12's own is older, and would fail with an error about its syntax.
    local needed found
    needed=$(sed -n 's/^go //p' "$ROOT/testing/suite/neighbours/go/go.mod")
    found=$(go env GOVERSION)
    printf '%s\n' "$needed" "${found#go}" | sort --check=quiet --version-sort || {
        WHY="Go $needed or newer is needed, and this is ${found#go}"
        return 1
    }
}

# The server's programs are where Debian puts them; its tests start one of their own.
ensure_postgres() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
    install_packages postgresql || return
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || {
        WHY='no PostgreSQL server after installing it'
        return 1
    }
}

ensure_server() {
    SERVER=$(find_server)
    if [ -n "$SERVER" ] && [ ! -x "$SERVER" ]; then
        # A choice that does not exist is an error, not a reason to take some other server.
        die "LOCKTOPUS_SERVER_BIN names $SERVER, which is not a program"
    elif [ -z "$SERVER" ]; then
        install_packages redis-server || install_packages valkey-server || return
        SERVER=$(find_server)
        if [ -z "$SERVER" ]; then
            WHY='the installed package brought no server program'
            return 1
        fi
    fi
    # Told before anything is built: what is no server would fail every cell of a run, each after its time.
    local version
    version=$("$SERVER" --version </dev/null 2>&1 | head -n 1) || true
    [[ $version == *server* ]] ||
        die "$SERVER is no redis-server or valkey-server: its --version says '$version'"
    # What is started from here on uses the same program.
    export LOCKTOPUS_SERVER_BIN=$SERVER
    say "server program: $version"
}

# A server program that was named, such as one out of an image, does not bring it.
ensure_redis_cli() {
    have redis-cli || have valkey-cli || install_packages redis-tools || install_packages valkey-tools || return
    have redis-cli || have valkey-cli || {
        WHY='the installed package brought no redis-cli'
        return 1
    }
}

# A library that gives a server process a clock that can be set. Debian and its kin have it as libfaketime.
ensure_clock_library() {
    has_clock_library && return
    install_packages libfaketime || return
    has_clock_library || {
        WHY='no libfaketime.so.1 after installing libfaketime'
        return 1
    }
}

# In the folders that testing/servers/src/topology/plain/clock.rs looks into.
has_clock_library() {
    local library
    for library in "${LOCKTOPUS_FAKETIME:-}" /usr/lib/*/faketime/libfaketime.so.1 \
        /usr/lib/faketime/libfaketime.so.1 /usr/lib64/faketime/libfaketime.so.1 \
        /usr/local/lib*/faketime/libfaketime.so.1; do
        [ ! -e "$library" ] || return 0
    done
    return 1
}

# --- Container engine -------------------------------------------------------------------------

ENGINE_PID=
readonly ENGINE_PID_FILE=/var/run/docker.pid
readonly CONTAINERD_PID_FILE=/var/run/docker/containerd/containerd.pid

engine_answers() { have docker && timeout 20 docker version >/dev/null 2>&1 </dev/null; }

# Whether the process whose number is in file $1 is a $2. One that was killed leaves the file, and its number may be that of
# another process or thread by now.
runs_as() {
    local pid
    pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]
}

engine_runs() { runs_as "$ENGINE_PID_FILE" dockerd; }

# dockerd asks only whether a process of that number lives, and does not start beside it.
forget_dead_engine() {
    runs_as "$ENGINE_PID_FILE" dockerd || as_root rm -f "$ENGINE_PID_FILE"
    runs_as "$CONTAINERD_PID_FILE" containerd || as_root rm -f "$CONTAINERD_PID_FILE"
}

# Waits up to $1 seconds for an answer; gives up early if the engine in ENGINE_PID ended.
await_engine() {
    local end=$((SECONDS + $1))
    until engine_answers; do
        [ "$SECONDS" -lt "$end" ] || return 1
        [ -z "$ENGINE_PID" ] || [ -d "/proc/$ENGINE_PID" ] || return 1
        sleep 1
    done
}

ensure_engine() {
    if engine_answers; then
        say "container engine: $(docker version --format '{{.Server.Version}}' 2>/dev/null || echo answers)"
        return
    fi
    install_engine || return
    if engine_answers; then
        return
    elif [ -n "${DOCKER_HOST:-}" ]; then
        WHY="the container engine at DOCKER_HOST does not answer"
        return 1
    elif engine_runs; then
        # Just starting, or only for other users.
        await_engine 20 && return
        WHY='a container engine runs, but gives this user no answer'
        return 1
    elif ! can_be_root; then
        WHY='no container engine runs, and starting one takes root'
        return 1
    fi
    start_engine
}

install_engine() {
    have docker && { have dockerd || [ -x /usr/sbin/dockerd ]; } && return
    # Where docker can be used it belongs to somebody; only a missing one is installed.
    [ -n "${DOCKER_HOST:-}" ] && have docker && return
    local packages=(docker.io)
    # Newer releases keep the client in a package of its own.
    if may_install && apt-cache show docker-cli >/dev/null 2>&1; then
        packages+=(docker-cli)
    fi
    install_packages "${packages[@]}" || return
    have docker && return
    # It may have become a package of its own only with the lists just fetched.
    install_packages docker-cli
}

start_engine() {
    if [ -d /run/systemd/system ]; then
        say 'starting the container engine: systemctl start docker (it stays)'
        if as_root systemctl start docker </dev/null && await_engine 60; then
            return
        fi
        WHY='the container engine was started by systemctl and does not answer this user'
        return 1
    fi
    make_scratch
    forget_dead_engine
    local log=$SCRATCH/dockerd.log program
    program=$(command -v dockerd || echo /usr/sbin/dockerd)
    say "starting the container engine: $program (it ends with this script)"
    # In a session of its own: Ctrl-C is for the tests, which still need it for cleaning up.
    # No function in the background either: its process id would be that of a shell in between.
    if is_root; then
        setsid "$program" >"$log" 2>&1 </dev/null &
    else
        # shellcheck disable=SC2024 # the log belongs to whoever runs the script
        sudo -n setsid "$program" >"$log" 2>&1 </dev/null &
    fi
    ENGINE_PID=$!
    at_exit stop_engine
    await_engine 60 && return
    WHY="dockerd does not answer; the end of what it wrote: $(tail -n 5 "$log" | tr '\n' ' ')"
    return 1
}

# Ends the engine that this script started, by its own id.
stop_engine() {
    [ -n "$ENGINE_PID" ] && [ -d "/proc/$ENGINE_PID" ] || return 0
    say "stopping the container engine that was started (process $ENGINE_PID)"
    as_root kill -TERM "$ENGINE_PID" 2>/dev/null || true
    local end=$((SECONDS + 30))
    while [ -d "/proc/$ENGINE_PID" ] && [ "$SECONDS" -lt "$end" ]; do
        sleep 0.5
    done
    [ -d "/proc/$ENGINE_PID" ] && warn "dockerd (process $ENGINE_PID) does not end"
    ENGINE_PID=
}

# --- Images -----------------------------------------------------------------------------------

has_image() { docker image inspect "$1" >/dev/null 2>&1; }

# Makes the helper image as the official images are made; the base comes from a registry.
build_helper() {
    say "building $HELPER_IMAGE"
    timeout 180 docker build --quiet --tag "$HELPER_IMAGE" --file "$ROOT/docker/nft.Dockerfile" \
        "$ROOT/docker" >/dev/null 2>&1 </dev/null
}

# Pulls what a registry has, and makes the rest from packages.
ensure_images() {
    local image missing=() registry=yes said
    for image in "${SERVER_IMAGES[@]}"; do
        has_image "$image" && continue
        if [ "$registry" = yes ]; then
            say "pulling $image"
            said=$(timeout 120 docker pull --quiet "$image" 2>&1 </dev/null) && continue
            case $said in
            *'manifest unknown'* | *'not found'*) ;;
            *)
                registry=no
                say 'no registry answers'
                ;;
            esac
        fi
        missing+=("$image")
    done
    if ! has_image "$HELPER_IMAGE"; then
        [ "$registry" = yes ] && build_helper || missing+=("$HELPER_IMAGE")
    fi
    [ ${#missing[@]} -gt 0 ] || return 0
    say "making images from packages: ${missing[*]}"
    if ! "$ROOT/scripts/build-images" "${missing[@]}" </dev/null; then
        WHY="scripts/build-images could not make ${missing[*]}"
        return 1
    fi
}
