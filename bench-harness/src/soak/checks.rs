//! The checks at the end of a soak, with every limit, and their table.

use std::collections::BTreeMap;

use serde::Serialize;

use super::asked::Asked;
use super::crowd::Crowds;
use super::witness::{Left, Own};
use crate::shared::render::table::{self, Style};

/// The share of the requested acquisitions that must be granted, in spite of restarts.
const REACHED: f64 = 0.99;
/// How much memory may grow from the first third of the run to its end: this share of it, or
/// [`GROWTH_BYTES`] if that is more.
const GROWTH: f64 = 0.05;
const GROWTH_BYTES: f64 = 24.0 * 1024.0 * 1024.0;

/// Everything that was observed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// Locks that were taken to be held.
    pub taken: u64,
    /// Those that were still held at the end.
    pub still_held: u64,
    /// The crowds.
    pub crowds: Crowds,
    /// Acquisitions of the stream that were granted.
    pub granted: u64,
    /// Those that were granted in time. The rest is served after the end, and does not count for
    /// the rate.
    pub in_time: u64,
    /// Acquisitions that were not started because too many were under way.
    pub skipped: u64,
    /// Grants while another holder was inside.
    pub overlaps: u64,
    /// Failures that a restart explains.
    pub excused: u64,
    /// All other failures, with how often each occurred.
    pub errors: BTreeMap<String, u64>,
    /// Their number.
    pub error_count: u64,
    /// Restarts that were done.
    pub restarts: u32,
    /// The longest restart, in milliseconds.
    pub longest_restart_ms: u64,
    /// The server's state at the end.
    pub left: Left,
    /// Releases and tasks that the clients abandoned.
    pub abandoned: u64,
    /// This process before the first connection.
    pub before: Own,
    /// This process after the last one.
    pub after: Own,
    /// Resident memory over time: seconds, bytes.
    pub memory: Vec<(f64, f64)>,
    /// The stream's median wait, and its 99.9th percentile, in microseconds.
    pub waits_us: (u64, u64),
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub what: &'static str,
    /// The limit.
    pub limit: String,
    /// The observation.
    pub seen: String,
    /// Whether it is within the limit.
    pub kept: bool,
}

/// The checks that failed.
#[must_use]
pub fn failed(checks: &[Check]) -> Vec<&'static str> {
    let failed = checks.iter().filter(|check| !check.kept);
    failed.map(|check| check.what).collect()
}

/// Compares the observations with every limit.
#[must_use]
pub fn judge(asked: &Asked, seen: &Seen) -> Vec<Check> {
    let wanted = f64::from(asked.rate) * asked.lasts.as_secs_f64();
    let rate = seen.in_time as f64 / asked.lasts.as_secs_f64();
    let held = asked.held as u64;
    let crowds = seen.crowds;
    let (growth, allowed) = growth(&seen.memory);
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / 1024.0 / 1024.0);
    let none = |what, count: u64| Check {
        what,
        limit: "0".to_owned(),
        seen: count.to_string(),
        kept: count == 0,
    };
    let back = |what, before: u64, after: u64| Check {
        what,
        limit: format!("{before}, as before"),
        seen: after.to_string(),
        // A reading without memory means that the process was not measured.
        kept: seen.before.memory > 0 && seen.after.memory > 0 && after <= before,
    };
    vec![
        Check {
            what: "locks held throughout",
            limit: held.to_string(),
            seen: format!("{} of {} taken", seen.still_held, seen.taken),
            kept: seen.still_held == held && seen.taken == held,
        },
        Check {
            what: "waiters of a crowd served",
            limit: format!("all {}, twice", asked.waiters),
            seen: format!("{} of {}", crowds.served, crowds.came),
            kept: crowds.rounds > 1
                && crowds.served == crowds.came
                && crowds.came == crowds.rounds * asked.waiters as u64,
        },
        Check {
            what: "acquisitions per second",
            limit: format!("{} ({:.0} %)", asked.rate, REACHED * 100.0),
            seen: format!(
                "{rate:.0}; {} after the end, {} not begun",
                seen.granted.saturating_sub(seen.in_time),
                seen.skipped
            ),
            kept: seen.in_time as f64 >= wanted * REACHED && wanted > 0.0,
        },
        Check {
            what: "restarts of the server",
            limit: asked.restarts.to_string(),
            seen: format!("{}, up to {} ms", seen.restarts, seen.longest_restart_ms),
            kept: seen.restarts == asked.restarts,
        },
        none("two holders at once", seen.overlaps),
        Check {
            what: "errors outside of restarts",
            limit: "0".to_owned(),
            seen: format!("{} ({} within)", seen.error_count, seen.excused),
            kept: seen.error_count == 0,
        },
        none("keys left, except kept ones", seen.left.keys.len() as u64),
        none("places in queues left", seen.left.waiters),
        none("channels left", seen.left.channels),
        none("patterns left", seen.left.patterns),
        none("connections left", seen.left.connections),
        none("abandoned releases", seen.abandoned),
        back("open files", seen.before.files, seen.after.files),
        back("tasks alive", seen.before.tasks, seen.after.tasks),
        Check {
            what: "memory grown by",
            limit: mib(allowed),
            seen: mib(growth),
            // Fewer points make no slope.
            kept: seen.memory.len() >= 3 && growth <= allowed,
        },
    ]
}

/// How much memory grew, by the straight line through the last two thirds, and how much it may
/// grow.
fn growth(memory: &[(f64, f64)]) -> (f64, f64) {
    let last = memory.last().map_or(0.0, |(at, _)| *at);
    // Until then all workers start, and caches fill.
    let steady: Vec<_> = memory.iter().filter(|(at, _)| *at >= last / 3.0).collect();
    let count = steady.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| steady.iter().map(|one| of(one)).sum::<f64>() / count;
    let (at, bytes) = (mean(|one| one.0), mean(|one| one.1));
    let spread: f64 = steady.iter().map(|one| (one.0 - at).powi(2)).sum();
    let together: f64 = steady
        .iter()
        .map(|one| (one.0 - at) * (one.1 - bytes))
        .sum();
    let slope = if spread > 0.0 { together / spread } else { 0.0 };
    (slope * last * 2.0 / 3.0, (bytes * GROWTH).max(GROWTH_BYTES))
}

/// The table, and the errors below it.
#[must_use]
pub fn table(checks: &[Check], seen: &Seen, style: Style) -> String {
    let mut table = table::new(&["", "limit", "seen", ""], style);
    for check in checks {
        let word = if check.kept { "ok" } else { "FAILED" };
        table.add_row([check.what, &check.limit, &check.seen, word]);
    }
    table::align(&mut table, 4);
    let (median, slow) = seen.waits_us;
    let waits = format!(
        "{} acquisitions; waits of the stream: half below {} ms, 999 of 1,000 below {} ms",
        seen.granted,
        median as f64 / 1000.0,
        slow as f64 / 1000.0,
    );
    let mut text = format!("{table}\n{}\n", table::wrap(&waits, "", style.width));
    for (error, count) in &seen.errors {
        text.push_str(&table::wrap(
            &format!("! {count} x {error}"),
            "  ",
            style.width,
        ));
        text.push('\n');
    }
    for key in seen.left.keys.iter().take(20) {
        text.push_str(&table::wrap(&format!("! left: {key}"), "  ", style.width));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked() -> Asked {
        Asked {
            lasts: Duration::from_secs(100),
            held: 50,
            waiters: 20,
            rate: 10,
            restarts: 2,
            leaks: Vec::new(),
        }
    }

    fn fine() -> Seen {
        let own = Own {
            files: 12,
            tasks: 3,
            memory: 1 << 20,
        };
        Seen {
            taken: 50,
            still_held: 50,
            crowds: Crowds {
                rounds: 3,
                came: 60,
                served: 60,
                slowest_ms: 5,
            },
            granted: 1_000,
            in_time: 995,
            restarts: 2,
            before: own,
            after: own,
            memory: (0..100).map(|at| (f64::from(at), 1e9)).collect(),
            ..Seen::default()
        }
    }

    #[test]
    fn nothing_is_wrong_with_a_run_that_went_well() {
        assert_eq!(failed(&judge(&asked(), &fine())), [""; 0]);
    }

    #[test]
    fn each_check_fails_alone() {
        type Change = fn(&mut Seen);
        let changes: [(&str, Change); 17] = [
            ("locks held throughout", |seen| seen.still_held = 49),
            ("locks held throughout", |seen| {
                (seen.taken, seen.still_held) = (49, 49);
            }),
            ("waiters of a crowd served", |seen| seen.crowds.served = 59),
            ("waiters of a crowd served", |seen| {
                seen.crowds = Crowds::default();
            }),
            ("acquisitions per second", |seen| seen.in_time = 989),
            ("restarts of the server", |seen| seen.restarts = 1),
            ("two holders at once", |seen| seen.overlaps = 1),
            ("errors outside of restarts", |seen| seen.error_count = 1),
            ("keys left, except kept ones", |seen| {
                seen.left.keys.insert("a".to_owned());
            }),
            ("places in queues left", |seen| seen.left.waiters = 1),
            ("channels left", |seen| seen.left.channels = 1),
            ("patterns left", |seen| seen.left.patterns = 1),
            ("connections left", |seen| seen.left.connections = 1),
            ("abandoned releases", |seen| seen.abandoned = 1),
            ("open files", |seen| seen.after.files += 1),
            ("tasks alive", |seen| seen.after.tasks += 1),
            ("memory grown by", |seen| {
                let grown = |(at, bytes): &(f64, f64)| (*at, bytes + at * 1e6);
                seen.memory = seen.memory.iter().map(grown).collect();
            }),
        ];
        let all: std::collections::BTreeSet<_> = changes.iter().map(|(what, _)| *what).collect();
        assert_eq!(all.len(), judge(&asked(), &fine()).len());
        for (what, change) in changes {
            let mut seen = fine();
            change(&mut seen);
            assert_eq!(failed(&judge(&asked(), &seen)), [what]);
        }
    }

    #[test]
    fn what_was_not_looked_at_is_not_fine() {
        let failed = failed(&judge(&asked(), &Seen::default()));
        for what in ["open files", "tasks alive", "memory grown by"] {
            assert!(failed.contains(&what), "{what}: {failed:?}");
        }
    }

    #[test]
    fn memory_that_settles_does_not_grow() {
        let settled = |at: i32| (f64::from(at), if at < 30 { 1e8 } else { 9e8 });
        let (growth, allowed) = growth(&(0..100).map(settled).collect::<Vec<_>>());
        assert!(growth < allowed, "{growth} {allowed}");
    }

    #[test]
    fn the_table_fits_a_narrow_terminal() {
        let style = Style {
            width: 80,
            colour: false,
        };
        let seen = fine();
        let text = table(&judge(&asked(), &seen), &seen, style);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}
