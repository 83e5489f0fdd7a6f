//! Faults of servers, connections and workers.

use locktopus_servers::topology::Caps;

use super::{Place, named};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// No fault: the workload alone.
    Nothing,
    /// SIGKILL the primary; a replica takes over, and the old primary returns as a replica.
    KillPrimary,
    /// The same, but the promoted replica lags behind, because the one that kept up is frozen.
    PromoteLaggard,
    /// SIGSTOP the primary until a replica has taken over, then let it continue.
    FreezePrimary,
    /// Cut the primary off from the other servers while clients still reach it.
    IsolatePrimary,
    /// Cut clients off from the primary while the other servers still reach it.
    IsolateClients,
    /// A planned failover.
    PlannedFailover,
    /// A sentinel promotes a replica although the primary is well and stays a primary for a while.
    /// Half of the clients lose their connections, so they look for the primary again.
    TwoPrimaries,
    /// SIGKILL the server and start it again.
    Restart,
    /// SIGSTOP the server for a while: it runs requests after their clients have given up.
    Freeze,
    /// SIGKILL a majority of a quorum's nodes and start them again, without their data.
    RestartMajority,
    /// SIGKILL one node of a quorum and start it again, without its data.
    RestartNode,
    /// Move the slot of a lock to another shard, with its keys.
    MoveSlot,
    /// `SCRIPT FLUSH` on every server.
    FlushScripts,
    /// Close every connection for commands, from the server's side.
    KillConnections,
    /// Close every connection for messages, from the server's side.
    KillSubscriptions,
    /// Close every connection for messages while the clients' address leads to the replica, so that
    /// they subscribe there; then lead the address back to the primary.
    MisleadSubscriptions,
    /// Fill the memory of a server that evicts keys.
    Evict,
    /// SIGSTOP the process of a holder until its lease has expired.
    StopHolder,
    /// SIGKILL the process of a holder.
    KillHolder,
    /// SIGKILL the process that has waited longest.
    KillWaiter,
    /// Set the server's clock ahead, and back to the true time at the next turn.
    StepClock,
    /// SIGSTOP a replica for a while.
    FreezeReplica,
    /// Several other faults at once, drawn anew for each turn.
    Nemesis,
}

named!(
    Verb: Nothing = "nothing", KillPrimary = "kill-primary", PromoteLaggard = "promote-laggard",
    FreezePrimary = "freeze-primary", IsolatePrimary = "isolate-primary",
    IsolateClients = "isolate-clients", PlannedFailover = "planned-failover",
    TwoPrimaries = "two-primaries",
    Restart = "restart", Freeze = "freeze", RestartMajority = "restart-majority",
    RestartNode = "restart-node", MoveSlot = "move-slot", FlushScripts = "flush-scripts",
    KillConnections = "kill-connections", KillSubscriptions = "kill-subscriptions",
    MisleadSubscriptions = "mislead-subscriptions",
    Evict = "evict", StopHolder = "stop-holder", KillHolder = "kill-holder",
    KillWaiter = "kill-waiter", StepClock = "step-clock",
    FreezeReplica = "freeze-replica", Nemesis = "nemesis",
);

impl Verb {
    /// The arrangements of servers that this fault fits.
    #[must_use]
    pub const fn fits(self, place: Place) -> bool {
        match self {
            Self::KillPrimary
            | Self::FreezePrimary
            | Self::FreezeReplica
            | Self::IsolatePrimary
            | Self::PlannedFailover => place.fails_over(),
            Self::PromoteLaggard | Self::TwoPrimaries => matches!(place, Place::Sentinel),
            Self::Restart | Self::Freeze | Self::Evict | Self::StepClock => {
                matches!(place, Place::Standalone)
            }
            Self::RestartMajority | Self::RestartNode => matches!(place, Place::Quorum),
            Self::MoveSlot => matches!(place, Place::Cluster),
            Self::MisleadSubscriptions => matches!(place, Place::Vip),
            Self::Nothing
            | Self::Nemesis
            | Self::IsolateClients
            | Self::FlushScripts
            | Self::KillConnections
            | Self::KillSubscriptions
            | Self::StopHolder
            | Self::KillHolder
            | Self::KillWaiter => true,
        }
    }

    /// Whether another server is in charge afterwards; the plan counts these as failovers.
    #[must_use]
    pub const fn fails_over(self) -> bool {
        matches!(
            self,
            Self::KillPrimary
                | Self::PromoteLaggard
                | Self::FreezePrimary
                | Self::IsolatePrimary
                | Self::PlannedFailover
                | Self::TwoPrimaries
                | Self::Nemesis
        )
    }

    /// The fault's group: a nemesis combines at most one of each. `None` if it stands alone.
    #[must_use]
    pub const fn sort(self) -> Option<u8> {
        Some(match self {
            Self::KillPrimary
            | Self::FreezePrimary
            | Self::Restart
            | Self::Freeze
            | Self::RestartNode => 0,
            Self::FreezeReplica => 1,
            Self::StopHolder => 2,
            Self::KillHolder => 3,
            Self::FlushScripts => 4,
            Self::KillConnections => 5,
            Self::KillSubscriptions => 6,
            Self::StepClock => 7,
            _ => return None,
        })
    }

    /// Whether servers still know every lock afterwards; `on_disk`: data survives a restart.
    #[must_use]
    pub const fn keeps_data(self, on_disk: bool) -> bool {
        match self {
            Self::Restart => on_disk,
            Self::Evict | Self::RestartMajority | Self::StepClock => false,
            other => !other.fails_over(),
        }
    }

    /// Whether servers answer throughout, and every client reaches them.
    #[must_use]
    pub const fn leaves_servers_alone(self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::FlushScripts
                | Self::StopHolder
                | Self::KillHolder
                | Self::KillWaiter
        )
    }

    /// Whether every waiter can be served throughout. A waiter that is silent for three heartbeats
    /// loses its place in a queue, and a waiter that does not listen is passed over.
    #[must_use]
    pub const fn keeps_order(self) -> bool {
        matches!(
            self,
            Self::Nothing | Self::FlushScripts | Self::KillHolder | Self::KillWaiter
        )
    }

    /// Whether an attempt may fail with this error while the fault keeps servers away or silent.
    /// `kind` is the workers' text: causes separated by commas.
    #[must_use]
    pub fn explains(self, kind: &str) -> bool {
        let away = match self {
            Self::Nothing
            | Self::FlushScripts
            | Self::StopHolder
            | Self::KillHolder
            | Self::KillWaiter => false,
            Self::KillPrimary
            | Self::PromoteLaggard
            | Self::FreezePrimary
            | Self::IsolatePrimary
            | Self::IsolateClients
            | Self::PlannedFailover
            | Self::TwoPrimaries
            | Self::Restart
            | Self::Freeze
            | Self::RestartMajority
            | Self::RestartNode
            | Self::MoveSlot
            | Self::KillConnections
            | Self::KillSubscriptions
            | Self::MisleadSubscriptions
            | Self::Evict
            | Self::StepClock
            | Self::FreezeReplica
            | Self::Nemesis => true,
        };
        let expected = [
            "no answer",
            "unavailable",
            "wait timeout",
            "no quorum",
            "not replicated",
        ];
        away && kind.split(", ").all(|cause| expected.contains(&cause))
    }

    /// Capabilities that the provider lacks for this fault.
    #[must_use]
    pub const fn needs(self, caps: Caps) -> Option<&'static str> {
        match self {
            Self::IsolatePrimary if !caps.peer_partition => {
                Some("--provider pod with NET_ADMIN, to cut servers off from each other")
            }
            Self::IsolateClients if !caps.client_cut => {
                Some("--provider pod with NET_ADMIN, to cut clients off")
            }
            Self::StepClock if !caps.set_clock => Some(
                "--provider plain with libfaketime (a package of that name, or LOCKTOPUS_FAKETIME=PATH)",
            ),
            _ => None,
        }
    }
}
