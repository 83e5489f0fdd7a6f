//! The page of figures.

use std::fs;
use std::time::{Duration, Instant};

use super::harness;
use crate::failure::{Done, Failure, fail, need};
use crate::shell::{Shell, say};
use crate::{running, tools};

pub(crate) const HELP: &str = "\
Measures the figures of docs/performance.md in one run, and writes that page and its goals.

Usage: scripts/performance [DIRECTORY]

Builds the harness once, waits until the machine is idle (a load average of 1.0 at most), measures
bench-harness/scenarios/targets.toml into DIRECTORY (bench-results/performance by default), judges
it by bench-harness/targets.toml, and writes the two pages, the picture and the figures.
Needs two idle cores, a server program, a JDK and Maven. The run says at the start how long it takes.
If a goal is not met, it still writes the pages and returns 8.";

const IDLE: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(900);

pub(crate) fn main(sh: &Shell, options: &[String]) -> Done {
    let out = options.first().map_or("bench-results/performance", String::as_str);
    need(tools::server(sh), "no server program")?;
    need(tools::jdk(sh), "no Java for Redisson")?;
    let program = harness::build(sh, "plain", &[])?;
    await_idle()?;
    // The kept part of the run contains these paths, so they are relative to the repository.
    let plan = [
        "--file",
        "bench-harness/scenarios/targets.toml",
        "--provider",
        "plain",
        "--pin",
        "--idle",
        "--out",
        out,
    ];
    sh.cmd(&program).arg("run").args(plan).run()?;
    let code = sh.cmd(&program).args(["targets", out, "--write", "docs"]).code()?;
    // With any other code the harness wrote nothing, and said why.
    if code == 0 || code == 8 {
        say(format!("pages: docs/performance.md and docs/performance-goals.md, from {out}"));
    }
    if code == 0 { Ok(()) } else { Err(Failure::Code(code)) }
}

/// A build raises the load average beyond what is running now, so wait until it has fallen.
fn await_idle() -> Done {
    let begun = Instant::now();
    loop {
        let said = fs::read_to_string("/proc/loadavg")?;
        let load = said.split(' ').next().unwrap_or_default();
        if load.parse::<f64>()? <= IDLE {
            return Ok(());
        } else if begun.elapsed() > PATIENCE {
            fail!(
                "the load average stays above {IDLE:.1}: it is {load}; measure on a machine that is idle"
            );
        }
        say(format!("waiting for an idle machine: load average {load}"));
        running::pause(15)?;
    }
}
