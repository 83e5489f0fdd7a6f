//! Random schedules of simulated clients, judged by what must never happen.

use locktopus_model::sim::{Config, Kind, Model};

use super::Subject;

/// Runs so many schedules of each way to run them.
pub(super) fn run(subject: &Subject, schedules: u64) -> Result<(), String> {
    let configs = subject.kinds.iter().flat_map(|kind| {
        let plain = Config::new(*kind);
        [plain, plain.with_strangers(), plain.with_failovers()]
    });
    for config in configs.filter(|config| subject.is_about(config)) {
        let summary = Model::new(config).run_many(0..schedules, 1);
        let summary = summary.map_err(|lacking| format!("{:?}: {lacking}", config.kind))?;
        if let Some(failure) = summary.failure {
            let ways = [
                (config.failovers, ", failovers"),
                (config.strangers, ", strangers"),
            ];
            let ways: String = ways.iter().filter(|way| way.0).map(|way| way.1).collect();
            return Err(format!(
                "{:?}{ways}, seed {}: {}\n{}",
                config.kind,
                failure.seed,
                failure.violation,
                failure.trace.join("\n")
            ));
        }
    }
    Ok(())
}

/// The kind whose clients run a script of this name.
pub(super) fn kind(script: &str) -> Option<Kind> {
    let kinds = [
        ("lock_", Kind::Lock),
        ("mutex_", Kind::Mutex),
        ("fair_lock_", Kind::Fair),
        ("read_lock_", Kind::ReadWrite),
        ("write_lock_", Kind::ReadWrite),
        ("semaphore_", Kind::Semaphore),
        // Those of its number have another name than the others.
        ("permits_", Kind::Permits),
        ("permit_semaphore_", Kind::Permits),
    ];
    let found = kinds.iter().find(|(start, _)| script.starts_with(start));
    found.map(|(_, kind)| *kind)
}
