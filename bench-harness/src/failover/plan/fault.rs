//! Faults: what is done to servers, connections and workers.

use locktopus_servers::topology::Caps;

use super::{Place, named};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Nothing: the workload alone.
    Nothing,
    /// SIGKILL the primary; a replica takes over, the old one comes back as replica.
    KillPrimary,
    /// The same while the replica that is promoted lags behind: the one that kept up is frozen.
    PromoteLaggard,
    /// SIGSTOP the primary until a replica has taken over, then let it run on.
    FreezePrimary,
    /// Cut the primary off from the other servers while clients still reach it.
    IsolatePrimary,
    /// Cut clients off from the primary while the other servers still reach it.
    IsolateClients,
    /// An orderly change of the primary.
    PlannedFailover,
    /// A sentinel promotes a replica while the primary is well and goes on for a while; half of the
    /// clients lose their connections, so that they look for the primary anew.
    TwoPrimaries,
    /// SIGKILL the server and start it again.
    Restart,
    /// SIGSTOP the server for a while: requests run when nobody waits for their answers any more.
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
    /// they listen there; then it leads to the primary again.
    MisleadSubscriptions,
    /// Fill the memory of a server that evicts.
    Evict,
    /// SIGSTOP the process of a holder until its lease is over.
    StopHolder,
    /// SIGKILL the process of a holder.
    KillHolder,
    /// SIGKILL the process that has waited longest.
    KillWaiter,
    /// Set the clock of the server ahead, and back to the true time at the next turn.
    StepClock,
    /// SIGSTOP a replica for a while.
    FreezeReplica,
    /// Several of the others at once, drawn anew for each turn.
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

/// When it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Right after a grant.
    Grant,
    /// At any time.
    Any,
}

named!(Moment: Grant = "grant", Any = "any");

impl Verb {
    /// On which servers it makes sense.
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

    /// What keeps it from being done together with another one: only one of each sort is. `None` if
    /// it stands alone.
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

    /// Whether servers still know every lock afterwards; `on_disk` is whether a restart finds its
    /// data again.
    #[must_use]
    pub const fn keeps_data(self, on_disk: bool) -> bool {
        match self {
            Self::Restart => on_disk,
            Self::Evict | Self::RestartMajority | Self::StepClock => false,
            other => !other.fails_over(),
        }
    }

    /// Whether servers answer all the time, and every client reaches them.
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

    /// Whether every waiter can be handed its lock all the time. One that is silent for three
    /// heartbeats loses its place in a queue, and one that does not listen is passed over.
    #[must_use]
    pub const fn keeps_order(self) -> bool {
        matches!(
            self,
            Self::Nothing | Self::FlushScripts | Self::KillHolder | Self::KillWaiter
        )
    }

    /// Whether an attempt may fail with this while servers are away or do not answer because of it.
    /// `kind` is as workers write it down: causes with commas between them.
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

    /// What is missing for it on servers that can do so much.
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
