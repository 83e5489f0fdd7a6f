//! One hot lock, simulated grant by grant.

use std::time::Duration;

use super::subject;
use crate::measure::model::{Pacing, Provider, Report, Server, ServerCost, Subject, Topology, op};
use crate::measure::record::{Exclusion, Recorder, RoundFacts};
use crate::shared::random::Random;

/// The parameters of a simulated strategy.
struct Shape {
    /// Median hand-off as a multiple of the RTT.
    hand_off_x: f64,
    /// Deviation of its logarithm.
    spread: f64,
    commands: f64,
    cpu_us: f64,
    /// With 0 workers are served in turn; larger values favour some workers more and more.
    greed: f64,
}

const X_NS: f64 = 48_000.0;
/// Simulated length of a round; in memory a hundredth, since grants come that much faster.
const ROUND_NS: u64 = 500_000_000;

/// Strategies against each other at several loads.
pub(super) fn contention(report: &mut Report, round: u32, random: &mut Random) {
    let mut position = 0;
    for workers in [2, 8, 32, 128] {
        let w = f64::from(workers);
        let shapes = [
            (
                "locktopus",
                Shape {
                    hand_off_x: 1.5,
                    spread: 0.13,
                    commands: 2.0,
                    cpu_us: 58.0,
                    greed: 0.0,
                },
            ),
            (
                "bare",
                Shape {
                    hand_off_x: 1.4,
                    spread: 0.1,
                    commands: 2.0,
                    cpu_us: 40.0,
                    greed: 0.0,
                },
            ),
            (
                "R1",
                Shape {
                    hand_off_x: 3.0 * w.powf(0.55),
                    spread: 0.35,
                    commands: 2.0 + w,
                    cpu_us: 90.0 * w.powf(0.58),
                    greed: w / 120.0,
                },
            ),
            (
                "rslock",
                Shape {
                    hand_off_x: 12.0,
                    spread: 0.9,
                    commands: 3.0 + w.sqrt(),
                    cpu_us: 60.0 + w,
                    greed: 1.2,
                },
            ),
        ];
        for (strategy, shape) in shapes {
            let mut subject = subject("hot-lock", strategy);
            (subject.workers, subject.processes) = (workers, workers.min(8));
            run(report, &subject, &shape, (round, position), random);
            position += 1;
        }
    }
}

/// Requests on a schedule.
pub(super) fn open_loop(report: &mut Report, round: u32, random: &mut Random) {
    let pacing = Pacing::OpenLoop {
        arrivals_per_second: 3_500,
    };
    for (position, strategy, hand_off_x) in [(0, "locktopus", 1.6), (1, "R1", 5.0)] {
        let mut subject = subject("scheduled-arrivals", strategy);
        subject.pacing = pacing;
        (subject.workers, subject.processes, subject.hold_ns) = (16, 4, 200_000);
        let shape = Shape {
            hand_off_x,
            spread: 0.3,
            commands: 2.0,
            cpu_us: 60.0,
            greed: 0.1,
        };
        run(report, &subject, &shape, (round, position), random);
    }
}

/// Sentinels behind a fault-injecting proxy, two safety modes.
pub(super) fn failover(report: &mut Report, round: u32, random: &mut Random) {
    for (position, safety) in [(0, "none"), (1, "wait-1")] {
        let mut subject = subject("failover", "locktopus");
        (subject.topology, subject.nodes) = (Topology::Sentinel, 6);
        (subject.workers, subject.processes, subject.through_proxy) = (8, 4, true);
        subject
            .options
            .insert("safety".to_owned(), safety.to_owned());
        let hand_off_x = if safety == "none" { 2.4 } else { 3.9 };
        let shape = Shape {
            hand_off_x,
            spread: 0.25,
            commands: 2.1,
            cpu_us: 70.0,
            greed: 0.0,
        };
        run(report, &subject, &shape, (round, position), random);
    }
}

/// The memory backend: no PING, no server, no cost.
pub(super) fn memory(report: &mut Report, random: &mut Random) {
    let mut subject = subject("hot-lock", "locktopus");
    subject.client = "memory".to_owned();
    (subject.topology, subject.nodes) = (Topology::InProcess, 0);
    (subject.provider, subject.server) = (Provider::Memory, None::<Server>);
    subject.workers = 8;
    let shape = Shape {
        hand_off_x: 0.01,
        spread: 0.2,
        commands: 0.0,
        cpu_us: 0.0,
        greed: 0.0,
    };
    for round in 0..3 {
        run(report, &subject, &shape, (round, 0), random);
    }
}

/// The result of a simulated round.
struct Simulated {
    recorder: Recorder,
    grants: u64,
    ended_at_ns: u64,
}

fn run(
    report: &mut Report,
    subject: &Subject,
    shape: &Shape,
    (index, position): (u32, u32),
    random: &mut Random,
) {
    let x = random.around(X_NS, 0.02);
    let simulated = simulate(subject, shape, x, random);
    let mut ping = Recorder::new_histogram();
    for _ in 0..500 {
        let _ = ping.record(random.latency(x, 0.06));
    }
    let grants = simulated.grants as f64;
    let cost = |per: f64| (per * random.around(1.0, 0.01) * grants) as u64;
    let server_cost = subject.server.as_ref().map(|_| server_cost(shape, cost));
    let facts = RoundFacts {
        index,
        position,
        duration: Duration::from_nanos(simulated.ended_at_ns),
        workers: subject.workers,
        ping: subject.server.is_some().then_some(ping),
        server_cost,
        client_cost: None,
        machine: None,
        exclusion: Some(Exclusion::Permits(1)),
    };
    if let Ok(round) = simulated.recorder.into_round(facts) {
        report.cell_mut(subject).rounds.push(round);
    }
}

fn simulate(subject: &Subject, shape: &Shape, x: f64, random: &mut Random) -> Simulated {
    let share = if subject.server.is_some() { 1 } else { 100 };
    let round_ns = ROUND_NS / share;
    let interval = Duration::from_nanos(round_ns / 40);
    let mut recorders: Vec<_> = (0..subject.workers)
        .map(|w| Recorder::new(w, op::HAND_OFF, interval))
        .collect();
    let mut outage = subject.scenario == "failover";
    let (mut grants, mut now) = (0, 0);
    let mut idle_since = vec![0; subject.workers as usize];
    while now < round_ns {
        grants += 1;
        let worker = winner(grants, subject.workers, shape.greed, random) as usize;
        let recorder = &mut recorders[worker];
        let acquire = recorder.operation(op::ACQUIRE);
        let hand_off = recorder.operation(op::HAND_OFF);
        let release = recorder.operation(op::RELEASE);
        let released = now;
        now += random.latency(x * shape.hand_off_x, shape.spread).max(1);
        if outage && now > round_ns / 2 {
            outage = false;
            now += round_ns / 6;
            recorder.error("connection lost");
        }
        recorder.record(hand_off, released, now);
        recorder.record(acquire, idle_since[worker], now);
        recorder.held(0, now, now + subject.hold_ns);
        now += subject.hold_ns;
        recorder.record(release, now, now + random.latency(x, 0.08));
        idle_since[worker] = now;
        if grants % 150 == 149 && shape.greed > 1.0 {
            recorder.error("timeout");
        }
    }
    let mut recorder = Recorder::new(0, op::HAND_OFF, interval);
    for other in recorders {
        // Both have the same series, so merging cannot fail.
        drop(recorder.merge(other));
    }
    Simulated {
        recorder,
        grants,
        ended_at_ns: now,
    }
}

fn server_cost(shape: &Shape, mut total: impl FnMut(f64) -> u64) -> ServerCost {
    let commands = total(shape.commands);
    ServerCost {
        commands,
        commands_with_scripts: Some(total(shape.commands * 3.2)),
        cpu_ns: Some(total(shape.cpu_us * 1_000.0)),
        scripts: None,
        by_command: [("evalsha".to_owned(), commands)].into(),
    }
}

fn winner(grant: u64, workers: u32, greed: f64, random: &mut Random) -> u32 {
    if greed == 0.0 {
        return (grant % u64::from(workers)) as u32;
    }
    (random.unit().powf(1.0 + greed) * f64::from(workers)) as u32
}
