//! The replies, messages, keys and number of commands of each shipped script, in short sequences of
//! calls recorded in `tests/transcripts`.
//!
//! These tests do not say what is right; the others do. These show each change, to the last digit,
//! so a reviewer sees the values before and after. After an intended change of a script,
//! `LOCKTOPUS_TRANSCRIPTS=write` records the new results of the same calls.
//! `LOCKTOPUS_TRANSCRIPTS=grow:FOLDER` adds courses that notice the mutants that `proof/run scripts
//! --export FOLDER` wrote; `LOCKTOPUS_TRANSCRIPTS_SEED`, `_POOL`, `_TRIES` and `_VARIATIONS` make
//! it try other and more courses.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "transcripts_common/mod.rs"]
mod common;

/// The same random requests as in the comparison with real servers.
#[allow(dead_code, reason = "no real server is here")]
#[path = "script_fidelity_common"]
mod random {
    pub(crate) mod calling;
    pub(crate) mod focus;
    pub(crate) mod recorder;
    mod scene;
    mod shim;
    mod sides;
    pub(crate) mod steps;

    #[path = "../fidelity_common/alike.rs"]
    mod alike;
    #[path = "../fidelity_common/wire.rs"]
    mod wire;
}

use std::path::Path;

use common::{grow, write, written};
use locktopus_model::lua::concerns;
use locktopus_model::transcripts::play::{Scripts, parting, record};
use locktopus_protocol::scripts;

/// The task: nothing to compare, `write`, or `grow:FOLDER`.
const VARIABLE: &str = "LOCKTOPUS_TRANSCRIPTS";
const SEED: &str = "LOCKTOPUS_TRANSCRIPTS_SEED";
const POOL: &str = "LOCKTOPUS_TRANSCRIPTS_POOL";
const TRIES: &str = "LOCKTOPUS_TRANSCRIPTS_TRIES";
const VARIATIONS: &str = "LOCKTOPUS_TRANSCRIPTS_VARIATIONS";

fn source(script: &str) -> &'static str {
    let mut all = scripts::all();
    all.find(|it| it.name == script).expect(script).source
}

#[test]
fn scripts_do_what_is_written_down() {
    let asked = std::env::var(VARIABLE).unwrap_or_default();
    let number = |name, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |number| number.parse().expect(name))
    };
    if let Some(folder) = asked.strip_prefix("grow:") {
        let effort = grow::Effort {
            of_each: number(POOL, 12),
            tries: usize::try_from(number(TRIES, 500)).unwrap(),
            variations: usize::try_from(number(VARIATIONS, 300)).unwrap(),
            seed: number(SEED, 1),
        };
        grow::grow(Path::new(folder), &effort);
        return;
    }
    let scripts = Scripts::new();
    let mut courses = written();
    if asked == "write" {
        courses
            .iter_mut()
            .for_each(|course| record(course, &scripts));
        write(&courses, |_| true);
        return;
    }
    assert!(courses.len() > 200, "only {} courses", courses.len());
    // With a mutant, only the courses that it may change.
    courses.retain(|course| course.scripts().any(|script| concerns(source(script))));
    for course in &courses {
        if let Some((at, lines)) = parting(course, &scripts) {
            let steps: Vec<_> = course.steps[..=at]
                .iter()
                .map(|(step, _)| format!("{step:?}"))
                .collect();
            panic!(
                "course {}\n{}\nwas\n    {}\nis\n    {}\nIf that is meant: {VARIABLE}=write, and look at the difference.",
                course.why,
                steps.join("\n"),
                course.steps[at].1.join("\n    "),
                lines.join("\n    ")
            );
        }
    }
}
