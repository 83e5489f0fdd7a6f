//! The promises under the faults of a schedule, which the judge then requires.

use locktopus_core::SafetyMode;

use crate::plan::{Fault, Kind, Lock, Plan};

impl Plan {
    /// Whether the promises go beyond those of one server that keeps its data.
    #[must_use]
    pub fn guards(&self) -> bool {
        self.quorum.is_some() || self.safety != SafetyMode::Plain
    }

    /// Whether these faults leave exclusion intact.
    #[must_use]
    pub fn promises_exclusion(&self) -> bool {
        self.exclusion_ends().is_none()
    }

    /// The fault that ends the promise of exclusion, and when it happens, in ms. Everything before
    /// a fault happens without it as well. So this is the first fault that, with those before it,
    /// leaves exclusion unpromised.
    #[must_use]
    pub fn exclusion_ends(&self) -> Option<(u64, Fault)> {
        let mut until = Self {
            faults: Vec::new(),
            ..self.clone()
        };
        let mut faults = self.faults.clone();
        faults.sort_by_key(|(at, _)| *at);
        faults.into_iter().find(|fault| {
            until.faults.push(*fault);
            !until.excludes()
        })
    }

    /// Whether exclusion is promised if these are all the faults.
    fn excludes(&self) -> bool {
        // Redisson computes the expiry of permits by the clock of its own machine, so they seem to
        // expire early on a server that was set back.
        let permits = |lock: &Lock| matches!(lock.kind, Kind::Permits(_));
        let own_clocks = self.processes.iter().any(|process| process.neighbour)
            && self.locks.iter().any(permits);
        let set = |fault: &Fault| matches!(fault, Fault::SetClock(_, by) if *by > 0 || own_clocks);
        let any =
            |wrong: &dyn Fn(&Fault) -> bool| self.faults.iter().any(|(_, fault)| wrong(fault));
        if any(&set) {
            return false;
        }
        if self.quorum.is_some() {
            return true;
        }
        // Quarantine grants nothing until leases from before the failover are over by any clock.
        if !matches!(self.safety, SafetyMode::Quarantine { .. }) && self.time_jumps() {
            return false;
        }
        match self.safety {
            SafetyMode::Plain => !any(&|fault| fault.forgets()),
            // Each of several failovers may lose what only the others kept.
            SafetyMode::Replicated { .. } => {
                let failovers = self.faults.iter().filter(|(_, fault)| fault.forgets());
                let moves = any(&|fault| matches!(fault, Fault::MoveSlot(..)));
                let returns = any(&|fault| matches!(fault, Fault::Return(..)));
                // The keys that a slot brings to another server are not waited for, and a server
                // that is promoted again had been replaced before.
                failovers.count() <= usize::from(!moves && !returns)
                    && !any(&|fault| matches!(fault, Fault::Split(..) | Fault::Restart(..)))
            }
            // Clients that still reach the old primary are renewed there.
            _ => !any(&|fault| matches!(fault, Fault::Split(..))),
        }
    }

    /// Whether a primary whose clock was set back may be replaced: its successor then sees leases
    /// as expired that the primary kept. A replica that was set back must be promoted first.
    fn time_jumps(&self) -> bool {
        let servers = self.shards_of_servers();
        let promotions = |of: usize, from: u64| {
            let faults = self.faults.iter().flat_map(|(at, fault)| match fault {
                Fault::Kill(shard) | Fault::Orderly(shard) | Fault::Split(shard, _) => {
                    vec![(*at, *shard)]
                }
                Fault::Return(shard, away) => vec![(*at, *shard), (at + away, *shard)],
                _ => Vec::new(),
            });
            faults
                .filter(|(at, shard)| *shard == of && *at >= from)
                .count()
        };
        self.faults.iter().any(|(at, fault)| match fault {
            Fault::SetClock(node, by) if *by < 0 => {
                let shard = servers[*node];
                let led = servers.iter().position(|of| *of == shard) == Some(*node);
                promotions(shard, *at) > 0 && (led || promotions(shard, 0) > 1)
            }
            _ => false,
        })
    }

    /// Whether a server knows of each hold that it reported for as long as the hold lasts, under
    /// these faults.
    #[must_use]
    pub fn servers_know_holders(&self) -> bool {
        let mut faults = self.faults.iter();
        let never = |fault: &Fault| fault.forgets() || matches!(fault, Fault::SetClock(..));
        self.quorum.is_none() && !faults.any(|(_, fault)| never(fault))
    }

    /// Whether tokens grow in the order of the grants, not only for requests sent a second after
    /// another grant.
    ///
    /// If keys come back after they had moved to another server, the old last token comes back with
    /// them.
    #[must_use]
    pub fn promises_order(&self) -> bool {
        let any = |of: &dyn Fn(&Fault) -> bool| self.faults.iter().any(|(_, fault)| of(fault));
        if any(&|fault| matches!(fault, Fault::MoveSlot(..))) && any(&|fault| fault.forgets()) {
            return false;
        }
        let clocks = self
            .faults
            .iter()
            .any(|(_, fault)| matches!(fault, Fault::SetClock(..)));
        !clocks && self.promises_exclusion()
    }
}
