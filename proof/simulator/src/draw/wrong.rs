//! Draws the faults of a schedule.

use locktopus_core::SafetyMode;
use locktopus_model::Rng;

use crate::plan::{Fault, Plan};

pub(super) fn faults(rng: &mut Rng, plan: &Plan) -> Vec<(u64, Fault)> {
    let count = rng.between(1, 4);
    // Until then servers count as new, and grant nothing.
    let new = match plan.safety {
        _ if plan.quorum.is_some() => plan.lease * 2,
        SafetyMode::Quarantine { .. } => plan.lease,
        _ => 0,
    };
    let mut faults: Vec<_> = (0..count)
        .map(|_| (new + rng.below(2_500), fault(rng, plan)))
        .collect();
    if plan.guards() && rng.permille(600) {
        let at = new + rng.below(2_500);
        aim(rng, plan, at, &mut faults);
    }
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// Draws the faults that safety modes guard against: servers that forget a held lock.
fn aim(rng: &mut Rng, plan: &Plan, at: u64, faults: &mut Vec<(u64, Fault)>) {
    let soon = |rng: &mut Rng| 20 + rng.below(300);
    if plan.quorum.is_some() {
        let majority = plan.servers() / 2 + 1;
        faults.retain(|(_, fault)| !fault.forgets());
        for node in 0..majority {
            let restart = Fault::Restart(node, soon(rng), false);
            faults.push((at + soon(rng), restart));
        }
    } else if plan.replicas[0] == 0 {
        let node = usize::try_from(rng.below(plan.servers() as u64)).unwrap_or(0);
        faults.push((at, Fault::Restart(node, soon(rng), false)));
    } else {
        aim_at(rng, plan, 0, at, faults);
    }
}

/// One shard loses what its replicas have not received yet, or everything.
pub(super) fn aim_at(
    rng: &mut Rng,
    plan: &Plan,
    shard: usize,
    at: u64,
    faults: &mut Vec<(u64, Fault)>,
) {
    faults.retain(|(_, fault)| !fault.forgets());
    let replicas = plan.replicas_of(shard);
    let fault = if replicas.is_empty() {
        // The shard's first server is its primary at the start.
        let servers = plan.shards_of_servers();
        let primary = servers.iter().position(|of| *of == shard).unwrap_or(0);
        Fault::Restart(primary, 20 + rng.below(300), false)
    } else {
        Fault::Kill(shard)
    };
    for replica in replicas {
        faults.push((at, Fault::Lag(replica, 700)));
    }
    faults.push((at + 20 + rng.below(300), fault));
}

fn fault(rng: &mut Rng, plan: &Plan) -> Fault {
    let process = usize::try_from(rng.below(plan.processes.len() as u64)).unwrap_or(0);
    let node = usize::try_from(rng.below(plan.servers() as u64)).unwrap_or(0);
    let long = rng.below(plan.lease * 2) + 50;
    let short = rng.below(600) + 20;
    if plan.shards() > 1 && rng.permille(350) {
        let lock = usize::try_from(rng.below(plan.locks.len() as u64)).unwrap_or(0);
        return Fault::MoveSlot(lock, short);
    }
    // The first six need a server with replicas.
    let low = if plan.replicas[0] > 0 { 0 } else { 6 };
    match rng.between(low, 19) {
        0 | 1 => Fault::Kill(0),
        2 => Fault::Orderly(0),
        3 => Fault::Split(0, long),
        4 => Fault::Lag(
            1 + usize::try_from(rng.below(plan.replicas[0] as u64)).unwrap_or(0),
            short,
        ),
        5 => Fault::Misplace(process),
        6 => Fault::Restart(node, short, rng.permille(500)),
        7 => Fault::FlushScripts(node),
        8 => Fault::OutOfMemory(node, short),
        9 => Fault::LacksReplicas(node, short),
        10..12 => Fault::Break(process),
        12..14 => Fault::Stall(process, long),
        14..16 => Fault::Suspend(process, long),
        16 => Fault::Sleep(process, long),
        17 => Fault::SetClock(node, rng.between(-500, 500)),
        _ => Fault::Die(process),
    }
}
