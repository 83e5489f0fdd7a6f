//! How long a run takes: rough, from what a fault has to wait for.

use std::time::Duration;

use super::{Cell, Place, Verb};

/// What stays of a hold, or of a lease, when it is looked at at any time.
const HALF: f64 = 0.5;
/// What a deployment more than one for each core adds to the time of a fault.
const CROWDED: f64 = 0.15;
const CORES: f64 = 2.0;

impl Cell {
    /// About how long it takes on two cores that have nothing else to do; nothing if it cannot be
    /// run.
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

    /// Servers, and the workers on them.
    fn beginning(&self) -> Duration {
        let servers = Duration::from_millis(match self.place {
            Place::Standalone => 300,
            Place::Sentinel => 2_500,
            Place::Cluster => 3_000,
            Place::Quorum | Place::Vip => 2_500,
        });
        servers + self.youth()
    }

    /// How long a restarted node of a quorum has no vote.
    fn youth(&self) -> Duration {
        match self.place {
            Place::Quorum => self.mode.max_lease.unwrap_or_default(),
            Place::Standalone | Place::Sentinel | Place::Cluster | Place::Vip => Duration::ZERO,
        }
    }

    /// One fault: the pause, the grant that it follows, what it does, and the grant that shows that
    /// it is over.
    fn turn(&self) -> Duration {
        let (shortest, longest) = self.scenario.pause;
        let grant = self.next_grant();
        (shortest + longest).mul_f64(HALF) + grant + self.outage() + grant
    }

    /// Until one of the target's locks is granted next.
    fn next_grant(&self) -> Duration {
        let groups = || self.scenario.groups.iter();
        let any = groups().any(|group| group.target);
        let soonest = groups().filter(|group| group.target || !any).map(|group| {
            let (shortest, longest) = group.hold;
            (shortest + longest).mul_f64(HALF) / (group.locks + 1)
        });
        soonest.min().unwrap_or_default()
    }

    /// From the fault to the time from which locks are granted again.
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

    /// Until a replica has taken over, and everything is as it was.
    fn takeover(&self) -> Duration {
        let servers = &self.scenario.servers;
        let joined_again = Duration::from_millis(1_500);
        match self.place {
            // The next failover has to wait for twice the limit of the last one.
            Place::Sentinel => servers.down_after + servers.failover_timeout * 2 + joined_again,
            _ => servers.node_timeout * 3 + joined_again,
        }
    }

    /// Holders finish, and what the dead ones held has to expire.
    fn end(&self) -> Duration {
        let holds = self.scenario.groups.iter().map(|group| group.hold.1);
        holds.max().unwrap_or_default().mul_f64(HALF) + Duration::from_secs(1)
    }
}
