//! What is promised with the faults of a schedule: what the judge requires.

use locktopus_core::SafetyMode;

use crate::plan::{Fault, Kind, Lock, Plan};

impl Plan {
    /// Whether more is promised than by one server that keeps its data.
    #[must_use]
    pub fn guards(&self) -> bool {
        self.quorum.is_some() || self.safety != SafetyMode::Plain
    }

    /// Whether nobody may be let in beside a holder, with these faults.
    #[must_use]
    pub fn promises_exclusion(&self) -> bool {
        self.exclusion_ends().is_none()
    }

    /// The fault from which on somebody may be let in beside a holder, and when in ms. What happens
    /// before a fault happens without it as well: so that is the first with which no exclusion is
    /// promised for the faults up to it.
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

    /// Whether exclusion is promised if these are all faults there are.
    fn excludes(&self) -> bool {
        // Redisson counts the time of permits by the clock of its own machine: it finds them over
        // early on a server set back.
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
        // In quarantine nobody is let in until leases of before the failover are over by any clock.
        if !matches!(self.safety, SafetyMode::Quarantine { .. }) && self.time_jumps() {
            return false;
        }
        match self.safety {
            SafetyMode::Plain => !any(&|fault| fault.forgets()),
            // Of several failovers each may lose what only the others knew.
            SafetyMode::Replicated { .. } => {
                let failovers = self.faults.iter().filter(|(_, fault)| fault.forgets());
                let moves = any(&|fault| matches!(fault, Fault::MoveSlot(..)));
                let returns = any(&|fault| matches!(fault, Fault::Return(..)));
                // What a slot brings to another server is not waited for, and who is promoted again
                // was replaced before.
                failovers.count() <= usize::from(!moves && !returns)
                    && !any(&|fault| matches!(fault, Fault::Split(..) | Fault::Restart(..)))
            }
            // Whoever still reaches the old primary is renewed there.
            _ => !any(&|fault| matches!(fault, Fault::Split(..))),
        }
    }

    /// Whether a primary may be replaced whose clock was set back: its successor finds leases over
    /// that it kept. A replica that was set back has to be promoted first.
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

    /// Whether a server that has told somebody of a hold knows of it for as long as that lasts,
    /// with these faults.
    #[must_use]
    pub fn servers_know_holders(&self) -> bool {
        let mut faults = self.faults.iter();
        let never = |fault: &Fault| fault.forgets() || matches!(fault, Fault::SetClock(..));
        self.quorum.is_none() && !faults.any(|(_, fault)| never(fault))
    }

    /// Whether tokens grow in the order of the grants, and not only where one is asked for a second
    /// after another one.
    ///
    /// Where keys come back that had moved to another server already, the last token comes back
    /// with them.
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
