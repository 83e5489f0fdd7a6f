//! The figures of a cell that deserve a column or a chart.

use super::{Quantile, Spread};
use crate::measure::model::{Cell, Round};
use crate::measure::record::{jain, max_over_min};

/// One figure of a cell, computable per round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A latency in nanoseconds.
    Latency(String, Quantile),
    /// The same as a multiple of the RTT (median round trip of PING) of the same round.
    LatencyInRtt(String, Quantile),
    /// Grants per second.
    Throughput,
    /// Commands that clients sent per grant.
    Commands,
    /// The same, including the commands that scripts called.
    CommandsWithScripts,
    /// Server CPU time per grant, in nanoseconds.
    ServerCpu,
    /// Time of single scripts inside the server: median, or the 99th percentile.
    Script(Quantile),
    /// CPU time of the workers' processes per grant, in nanoseconds.
    ClientCpu,
    /// Memory of the workers' processes per held lock or waiter, in bytes.
    ClientMemory,
    /// Share of the grants that were recorded under this operation.
    Share(String),
    /// Jain's index over the workers.
    Jain,
    /// Grants of the best served worker divided by those of the worst.
    MaxOverMin,
}

/// Whether a measure should fall or rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, shown as microseconds.
    Nanos,
    /// Multiples of the RTT.
    Rtt,
    /// Per second.
    PerSecond,
    /// A plain number.
    Plain,
}

impl Measure {
    /// Median and spread over the rounds of `cell`; `None` when no round has the figure.
    #[must_use]
    pub fn of(&self, cell: &Cell) -> Option<Spread> {
        Spread::of(cell.rounds.iter().filter_map(|round| self.of_round(round)))
    }

    /// The figure of one round.
    #[must_use]
    pub fn of_round(&self, round: &Round) -> Option<f64> {
        let per_grant =
            |total: u64| (round.acquisitions > 0).then(|| total as f64 / round.acquisitions as f64);
        let cost = round.server_cost.as_ref();
        match self {
            Self::Latency(name, quantile) => {
                Some(quantile.of(&round.operations.get(name)?.summary) as f64)
            }
            Self::LatencyInRtt(name, quantile) => {
                let x = round.ping.as_ref()?.summary.p50_ns;
                let value = quantile.of(&round.operations.get(name)?.summary);
                (x > 0).then(|| value as f64 / x as f64)
            }
            Self::Throughput => {
                // A rate of 0 counts only if a worker asked for a lock.
                let asked = round.acquisitions > 0
                    || !(round.operations.is_empty() && round.errors.is_empty());
                (asked && round.duration_ns > 0)
                    .then(|| round.acquisitions as f64 * 1e9 / round.duration_ns as f64)
            }
            Self::Commands => per_grant(cost?.commands),
            Self::CommandsWithScripts => per_grant(cost?.commands_with_scripts?),
            Self::ServerCpu => per_grant(cost?.cpu_ns?),
            Self::Script(Quantile::P50) => Some(cost?.scripts?.p50_ns as f64),
            Self::Script(Quantile::P99) => Some(cost?.scripts?.p99_ns as f64),
            Self::Script(_) => None,
            Self::ClientCpu => per_grant(round.client_cost?.cpu_ns),
            Self::ClientMemory => {
                let memory = round.client_cost?.memory?;
                (memory.by > 0).then(|| memory.bytes as f64 / memory.by as f64)
            }
            Self::Share(name) => per_grant(round.operations.get(name)?.summary.count),
            // A single worker has no one to share with.
            Self::Jain if round.acquisitions_per_worker.len() > 1 => {
                jain(&round.acquisitions_per_worker)
            }
            Self::MaxOverMin if round.acquisitions_per_worker.len() > 1 => {
                max_over_min(&round.acquisitions_per_worker)
            }
            Self::Jain | Self::MaxOverMin => None,
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        match self {
            Self::Latency(..) | Self::ServerCpu | Self::ClientCpu | Self::Script(_) => Unit::Nanos,
            Self::LatencyInRtt(..) => Unit::Rtt,
            Self::Throughput => Unit::PerSecond,
            Self::Commands
            | Self::CommandsWithScripts
            | Self::ClientMemory
            | Self::Share(_)
            | Self::Jain
            | Self::MaxOverMin => Unit::Plain,
        }
    }

    /// Whether it should fall or rise.
    #[must_use]
    pub const fn better(&self) -> Better {
        match self {
            // Operations get a share of their own because they might starve.
            Self::Throughput | Self::Jain | Self::Share(_) => Better::Higher,
            Self::Latency(..)
            | Self::LatencyInRtt(..)
            | Self::Commands
            | Self::CommandsWithScripts
            | Self::ServerCpu
            | Self::Script(_)
            | Self::ClientCpu
            | Self::ClientMemory
            | Self::MaxOverMin => Better::Lower,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::model::{ClientCost, Occupied};
    use crate::measure::synthetic;

    #[test]
    fn multiples_use_x_of_the_same_round() {
        let report = synthetic::shared();
        let cell = &report.cells[0];
        let p50 = |name: &str| Measure::Latency(name.to_owned(), Quantile::P50);
        for round in &cell.rounds {
            let x = round.ping.as_ref().unwrap().summary.p50_ns as f64;
            let ratio = Measure::LatencyInRtt("hand-off".to_owned(), Quantile::P50).of_round(round);
            assert_eq!(ratio.unwrap(), p50("hand-off").of_round(round).unwrap() / x);
        }
    }

    #[test]
    fn what_clients_spend_is_told_per_grant_and_per_thing_held() {
        let mut cell = synthetic::shared().cells[0].clone();
        let round = &mut cell.rounds[0];
        round.client_cost = Some(ClientCost {
            cpu_ns: 3 * round.acquisitions,
            memory: Some(Occupied {
                bytes: 5_000,
                by: 10,
            }),
        });
        assert_eq!(Measure::ClientCpu.of_round(round), Some(3.0));
        assert_eq!(Measure::ClientMemory.of_round(round), Some(500.0));
        assert_eq!(Measure::ClientMemory.of_round(&cell.rounds[1]), None);
    }
}
