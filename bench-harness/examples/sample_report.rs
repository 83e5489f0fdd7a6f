//! Writes an invented report, for work on the renderers: `sample_report KIND > FILE`, where KIND
//! is `full` (the default), `regressed`, `memory` or `empty`.

use bench_harness::measure::{model, synthetic};

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let report = match kind.as_str() {
        "regressed" => synthetic::regressed(),
        "memory" => synthetic::memory_only(7),
        "empty" => synthetic::empty(),
        _ => synthetic::report(7),
    };
    print!("{}", model::to_json(&report));
}
