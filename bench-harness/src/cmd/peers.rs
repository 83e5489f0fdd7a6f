//! Finds out which peers can be measured here.

use std::ffi::OsString;

use crate::measure::model::Report;
use crate::measure::plan::{Strategy, Task};

/// Removes the tasks of peers that cannot be measured here, and notes that in the report. Builds
/// Redisson's worker if a task wants it, and returns its program and arguments.
pub(super) async fn prepare(tasks: &mut Vec<Task>, report: &mut Report) -> Option<Vec<OsString>> {
    if cfg!(not(feature = "peers")) {
        let needs = "the feature \"peers\" of bench-harness";
        leave_out(tasks, report, "peers", needs.to_owned(), |strategy| {
            strategy != Strategy::Locktopus
        });
    }
    if !tasks.iter().any(|task| task.strategy == Strategy::Redisson) {
        return None;
    }
    match redisson().await {
        Ok((version, worker)) => {
            report.note(format!(
                "Redisson is version {version}; before it counts, it runs each workload for its warm-up, \
                 so that Java compiles it."
            ));
            Some(worker)
        }
        Err(needs) => {
            leave_out(tasks, report, "Redisson", needs, |strategy| {
                strategy == Strategy::Redisson
            });
            None
        }
    }
}

fn leave_out(
    tasks: &mut Vec<Task>,
    report: &mut Report,
    what: &str,
    needs: String,
    which: impl Fn(Strategy) -> bool,
) {
    let before = tasks.len();
    tasks.retain(|task| !which(task.strategy));
    if tasks.len() < before {
        eprintln!("{what} left out; needed: {needs}");
        report.skip(what, needs);
    }
}

/// Redisson's version and its worker, or the reason why there is none.
#[cfg(all(feature = "peers", unix))]
pub(super) async fn redisson() -> Result<(String, Vec<OsString>), String> {
    use locktopus_servers::peers::redisson::{Jar, RedissonError};

    eprintln!("looking for Redisson; the first time Maven downloads and builds it");
    let found = async {
        let jar = Jar::find_or_build().await?;
        Ok((jar.version().await?, jar.command_line("worker").into()))
    };
    found.await.map_err(|error: RedissonError| {
        format!("a JDK of version 17 or newer, and Maven with its repository ({error})")
    })
}

#[cfg(not(all(feature = "peers", unix)))]
pub(super) async fn redisson() -> Result<(String, Vec<OsString>), String> {
    std::future::ready(Err("a system with processes as Unix has them".to_owned())).await
}
