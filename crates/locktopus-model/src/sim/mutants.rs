//! Wrong clients and wrong scripts, each of which the model must notice.
//!
//! A model that finds nothing proves nothing unless it finds what is there: these are the mistakes that lock
//! libraries have made, and those that the hand-off could make.

mod clients;
mod handing_on;
mod mixed;
mod taking;
mod wrong;

use self::wrong::Wrong;
use crate::sim::config::Config;
use crate::sim::kind::Kind;
use crate::sim::patch::Patch;
use crate::sim::rules::Flaw;

/// One mistake.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What is wrong.
    pub name: &'static str,
    /// Schedules in which it can be noticed.
    pub config: Config,
}

/// Every mistake.
#[must_use]
pub fn mutants() -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (name, flaw) in clients::FLAWS {
        // On the lock, 20,000 schedules do not show it; on the fair lock, one of the first 1,400 does.
        let kind = match flaw {
            Flaw::NoResync => Kind::Fair,
            _ => Kind::Lock,
        };
        let config = Config::new(kind).with_flaw(*flaw);
        mutants.push(Mutant { name, config });
    }
    let scripts = [handing_on::PATCHES, taking::PATCHES, mixed::PATCHES];
    for wrong in scripts.into_iter().flatten() {
        let Wrong {
            name,
            kind,
            failovers,
            strangers,
            script,
            from,
            to,
            more,
        } = *wrong;
        let patch = Patch {
            script,
            from,
            to,
            more,
        };
        let config = Config {
            failovers,
            strangers,
            ..Config::new(kind).with_patch(patch)
        };
        mutants.push(Mutant { name, config });
    }
    mutants
}
