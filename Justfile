# Recipes for `just`. Each is one script or one cargo command that works without just as well.

# Lists the recipes.
default:
    @just --list --unsorted

# Measures locks on real servers; options go to `locktopus-bench run`.
bench *OPTIONS:
    scripts/bench {{OPTIONS}}

# Measures the figures of docs/performance.md, on an idle machine, and writes the page.
performance *OPTIONS:
    scripts/performance {{OPTIONS}}

# Injects faults into servers under lock load, and reports what happened to the locks.
failover *OPTIONS:
    scripts/failover {{OPTIONS}}

# Micro-benchmarks of hot paths.
bench-micro *OPTIONS:
    cargo bench --package bench-harness {{OPTIONS}}

# Every test, on every topology.
test:
    scripts/test

# Tests that need no server.
test-quick:
    scripts/test --quick

# Proof: `just prove --help` lists the levels.
prove *OPTIONS:
    proof/run {{OPTIONS}}

# Many locks for a long time, with restarts, and nothing left at the end; `just soak --minutes 60` before a release.
soak *OPTIONS:
    scripts/soak {{OPTIONS}}

# MultiLock at length, on real servers and in memory: random subsets for 10^5 rounds.
multi-lock ROUNDS='100000':
    LOCKTOPUS_ROUNDS={{ROUNDS}} cargo test --package locktopus-suite --all-features --test suite -- multi_lock --nocapture
    LOCKTOPUS_ROUNDS={{ROUNDS}} cargo test --package locktopus-quorum --test all -- multi::random_subsets --nocapture

# What CI runs.
check:
    .ci/run

# Formats the code.
fmt:
    cargo fmt --all

# Makes static programs, .deb packages and a container image.
package *OPTIONS:
    scripts/package {{OPTIONS}}

# Builds the documentation.
docs:
    cargo doc --workspace --no-deps --all-features

# Builds the book into target/book; `just book --open` shows it.
book *OPTIONS:
    scripts/book {{OPTIONS}}

# Starts servers (standalone, sentinel, cluster, quorum, tls), prints their URLs, keeps them until Ctrl-C.
topology NAME *OPTIONS:
    cargo run --release --package bench-harness -- topology up {{NAME}} {{OPTIONS}}

# Judges a stored run against the targets: `just targets bench-results/TIME`.
targets RUN:
    cargo run --release --package bench-harness -- targets {{RUN}}

# Renders a stored run again: `just report bench-results/TIME/report.json -f table`.
report FILE *OPTIONS:
    cargo run --release --package bench-harness -- report {{FILE}} {{OPTIONS}}
