//! Writes an invented report, for work on the renderers: `sample_report KIND > FILE`, where KIND
//! is `full` (the default), `regressed`, `memory` or `empty`.

use bench_harness::measure::{model, sample};

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let report = match kind.as_str() {
        "regressed" => sample::regressed(),
        "memory" => sample::memory_only(7),
        "empty" => sample::empty(),
        _ => sample::report(7),
    };
    print!("{}", model::to_json(&report));
}
