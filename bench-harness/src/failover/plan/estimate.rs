//! A rough estimate of how long a run takes, from the waits that each fault includes.

use std::time::Duration;

use super::{Cell, Place, Verb};

/// The average share of a hold or a lease that is left at a random moment.
const HALF: f64 = 0.5;
/// The share that each deployment beyond the number of cores adds to the time of a fault.
const CROWDED: f64 = 0.15;
const CORES: f64 = 2.0;

impl Cell {
    /// About how long the cell takes on two idle cores; zero if it cannot run.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        if self.cannot.is_some() {
            return Duration::ZERO;
        }
        let scenario = &self.scenario;
        if scenario.fault == Verb::Nothing {
            return self.beginning() + scenario.lasts + self.end();
        }
        let deployments = scenario.deployments.min(scenario.faults);
        let turns = scenario.faults.div_ceil(deployments.max(1));
        let crowd = 1.0 + CROWDED * (f64::from(deployments) - CORES).max(0.0);
        self.beginning() + self.turn().mul_f64(crowd) * turns + self.end()
    }

    /// Starting the servers, and then the workers.
    fn beginning(&self) -> Duration {
        let servers = Duration::from_millis(match self.place {
            Place::Standalone => 300,
            Place::Sentinel => 2_500,
            Place::Cluster => 3_000,
            Place::Quorum | Place::Vip => 2_500,
        });
        servers + self.youth()
    }

    /// How long a restarted node of a quorum may not vote.
    fn youth(&self) -> Duration {
        match self.place {
            Place::Quorum => self.mode.max_lease.unwrap_or_default(),
            Place::Standalone | Place::Sentinel | Place::Cluster | Place::Vip => Duration::ZERO,
        }
    }

    /// One fault: the pause, the grant before it, the outage, and the grant that ends it.
    fn turn(&self) -> Duration {
        let (shortest, longest) = self.scenario.pause;
        let grant = self.next_grant();
        (shortest + longest).mul_f64(HALF) + grant + self.outage() + grant
    }

    /// Until the next grant of one of the target locks.
    fn next_grant(&self) -> Duration {
        let groups = || self.scenario.groups.iter();
        let any = groups().any(|group| group.target);
        let soonest = groups().filter(|group| group.target || !any).map(|group| {
            let (shortest, longest) = group.hold;
            (shortest + longest).mul_f64(HALF) / (group.locks + 1)
        });
        soonest.min().unwrap_or_default()
    }

    /// From the fault until locks are granted again.
    fn outage(&self) -> Duration {
        let scenario = &self.scenario;
        let fault = match scenario.fault {
            Verb::IsolatePrimary | Verb::FreezePrimary => self.takeover() + scenario.lasts,
            fault if fault.fails_over() => self.takeover(),
            Verb::Freeze | Verb::IsolateClients | Verb::StopHolder | Verb::MisleadSubscriptions => {
                scenario.lasts
            }
            Verb::RestartMajority => self.youth() + Duration::from_millis(500),
            _ => Duration::from_millis(300),
        };
        let forgets = !scenario.keeps_data();
        let quarantine = self.mode.max_lease.filter(|_| forgets && !self.mode.quorum);
        fault + quarantine.unwrap_or_default()
    }

    /// Until a replica has taken over and the servers are back in order.
    fn takeover(&self) -> Duration {
        let servers = &self.scenario.servers;
        let joined_again = Duration::from_millis(1_500);
        match self.place {
            // The next failover must wait for twice the limit of the last one.
            Place::Sentinel => servers.down_after + servers.failover_timeout * 2 + joined_again,
            _ => servers.node_timeout * 3 + joined_again,
        }
    }

    /// Holders finish, and the leases of dead holders expire.
    fn end(&self) -> Duration {
        let holds = self.scenario.groups.iter().map(|group| group.hold.1);
        holds.max().unwrap_or_default().mul_f64(HALF) + Duration::from_secs(1)
    }
}
