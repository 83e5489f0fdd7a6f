//! Differences between two runs besides the code.

use std::collections::BTreeSet;

use super::format;
use crate::measure::model::{Cell, Report};

/// One sentence for each difference that can change figures.
pub(super) fn between(before: &Report, after: &Report, pairs: &[(&Cell, &Cell)]) -> Vec<String> {
    let (a, b) = (&before.environment, &after.environment);
    let (ha, hb) = (&before.harness, &after.harness);
    let facts = [
        ("operating system", a.os.clone(), b.os.clone()),
        ("kernel", a.kernel.clone(), b.kernel.clone()),
        ("architecture", a.arch.clone(), b.arch.clone()),
        ("processor", a.cpu_model.clone(), b.cpu_model.clone()),
        (
            "cores",
            a.logical_cores.to_string(),
            b.logical_cores.to_string(),
        ),
        (
            "memory",
            format::bytes(a.memory_bytes),
            format::bytes(b.memory_bytes),
        ),
        ("pinning", a.pinning.describe(), b.pinning.describe()),
        ("compiler", ha.rust_version.clone(), hb.rust_version.clone()),
        (
            "build profile",
            ha.build_profile.clone(),
            hb.build_profile.clone(),
        ),
        (
            "seed",
            before.run.seed.to_string(),
            after.run.seed.to_string(),
        ),
        (
            "rounds",
            before.run.rounds.to_string(),
            after.run.rounds.to_string(),
        ),
        (
            "server",
            servers(pairs, |pair| pair.0),
            servers(pairs, |pair| pair.1),
        ),
        (
            "provider",
            providers(pairs, |pair| pair.0),
            providers(pairs, |pair| pair.1),
        ),
    ];
    let mut found: Vec<_> = facts
        .into_iter()
        .filter(|(_, before, after)| before != after)
        .map(|(what, before, after)| format!("{what}: {before} → {after}"))
        .collect();
    found.extend(busier(before, after));
    found
}

/// A difference of one core's worth of load competes with what is measured.
fn busier(before: &Report, after: &Report) -> Option<String> {
    let [a, ..] = before.environment.load_average_at_start?;
    let [b, ..] = after.environment.load_average_at_start?;
    ((a - b).abs() >= 1.0).then(|| format!("load average at start: {a:.2} → {b:.2}"))
}

fn servers<'a>(
    pairs: &[(&'a Cell, &'a Cell)],
    side: impl Fn(&(&'a Cell, &'a Cell)) -> &'a Cell,
) -> String {
    let names = pairs
        .iter()
        .filter_map(|pair| side(pair).subject.server.as_ref());
    join(names.map(|server| format!("{} {}", server.flavour, server.version)))
}

fn providers<'a>(
    pairs: &[(&'a Cell, &'a Cell)],
    side: impl Fn(&(&'a Cell, &'a Cell)) -> &'a Cell,
) -> String {
    join(
        pairs
            .iter()
            .map(|pair| side(pair).subject.provider.name().to_owned()),
    )
}

fn join(names: impl Iterator<Item = String>) -> String {
    let names: BTreeSet<_> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::report::compare::compare;
    use crate::measure::synthetic;

    #[test]
    fn server_and_pinning_are_named() {
        let after = synthetic::regressed();
        let found = compare(synthetic::shared(), &after).differences;
        assert!(
            found
                .iter()
                .any(|d| d == "server: redis 7.0.15 → redis 7.2.4"),
            "{found:?}"
        );
        assert!(
            found.iter().any(|d| d.starts_with("pinning: ")),
            "{found:?}"
        );
    }
}
