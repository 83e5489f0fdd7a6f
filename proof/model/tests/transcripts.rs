//! What each shipped script answers, publishes and leaves, and how many commands that takes, in
//! short sequences of calls that are written down in `tests/transcripts`.
//!
//! Nobody says here what is right: the other tests do. These say that nothing changed, to the last
//! digit, and where it did a reader of the change sees from what to what. After a change of a
//! script that is meant,
//! `LOCKTOPUS_TRANSCRIPTS=write` writes down what comes of the same calls now. `LOCKTOPUS_TRANSCRIPTS=grow:FOLDER`
//! adds courses that notice the mutants that `proof/run scripts --export FOLDER` put there;
//! `LOCKTOPUS_TRANSCRIPTS_SEED`, `_POOL`, `_TRIES` and `_VARIATIONS` make it try others, and more.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "transcripts_common/mod.rs"]
mod common;

/// The random requests are those of the comparison with real servers.
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

/// What is asked for.
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
    // With a mutant only those are played that it may change.
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
