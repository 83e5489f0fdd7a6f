//! One worker, no contention: clients by topologies.

use std::time::Duration;

use super::subject;
use crate::measure::model::{Report, ServerCost, Topology, op};
use crate::measure::record::{Exclusion, Recorder, RoundFacts};
use crate::shared::random::Random;

const PAIRS: u64 = 3_000;

/// Acquire and release, by two clients on four topologies.
pub(super) fn clients_by_topologies(report: &mut Report, round: u32, random: &mut Random) {
    let topologies = [
        (Topology::Standalone, 1, 2.05),
        (Topology::Sentinel, 6, 2.08),
        (Topology::Cluster, 6, 2.2),
        (Topology::Quorum, 5, 2.7),
    ];
    let mut position = 0;
    for (topology, nodes, pair_x) in topologies {
        for (client, factor) in [("redis-rs", 1.0), ("fred", 1.08)] {
            if (client, topology) == ("fred", Topology::Quorum) {
                continue;
            }
            let mut subject = subject("uncontended", "locktopus");
            (subject.topology, subject.nodes) = (topology, nodes);
            client.clone_into(&mut subject.client);
            let x = random.around(48_000.0 * factor, 0.02);
            let ratio = pair_x * random.around(1.0, 0.01);
            if let Some(measured) = measure(x, ratio, nodes, (round, position), random) {
                report.cell_mut(&subject).rounds.push(measured);
            }
            position += 1;
        }
    }
}

fn measure(
    x: f64,
    ratio: f64,
    nodes: u32,
    (index, position): (u32, u32),
    random: &mut Random,
) -> Option<crate::measure::model::Round> {
    let mut recorder = Recorder::new(0, op::PAIR, Duration::from_millis(10));
    let mut ping = Recorder::new_histogram();
    let pair = recorder.operation(op::PAIR);
    let (acquire, release) = (
        recorder.operation(op::ACQUIRE),
        recorder.operation(op::RELEASE),
    );
    let mut now = 0;
    for _ in 0..PAIRS {
        let start = now;
        let granted = start + random.latency(x * ratio / 2.0, 0.07);
        now = granted + random.latency(x * ratio / 2.0, 0.07);
        recorder.record(acquire, start, granted);
        recorder.record(release, granted, now);
        recorder.record(pair, start, now);
        recorder.held(0, granted, granted);
        let _ = ping.record(random.latency(x, 0.06));
    }
    let commands = if nodes == 5 { 2 * 5 * PAIRS } else { 2 * PAIRS };
    let facts = RoundFacts {
        index,
        position,
        duration: Duration::from_nanos(now),
        workers: 1,
        ping: Some(ping),
        server_cost: Some(ServerCost {
            commands,
            commands_with_scripts: Some(commands * 3),
            cpu_ns: Some(commands * 8_500),
            scripts: None,
            by_command: [("evalsha".to_owned(), commands)].into(),
        }),
        client_cost: None,
        machine: None,
        exclusion: Some(Exclusion::Permits(1)),
    };
    recorder.into_round(facts).ok()
}
