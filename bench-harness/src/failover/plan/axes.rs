//! The axes along which cells differ: the servers, and whose lock it is.

use locktopus_servers::topology::TopologyKind;

use super::{Verb, named};

/// The arrangement of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// One server.
    Standalone,
    /// A primary and two replicas, watched by three sentinels.
    Sentinel,
    /// Three primaries with a replica each.
    Cluster,
    /// Five independent servers.
    Quorum,
    /// A primary with a replica behind one address, which leads to either of them, as a virtual IP
    /// or a DNS name does.
    Vip,
}

named!(Place: Standalone = "standalone", Sentinel = "sentinel", Cluster = "cluster", Quorum = "quorum", Vip = "vip");

impl Place {
    /// The topology to start.
    #[must_use]
    pub const fn kind(self) -> TopologyKind {
        match self {
            Self::Standalone => TopologyKind::Standalone,
            Self::Sentinel => TopologyKind::SENTINEL,
            Self::Cluster => TopologyKind::CLUSTER,
            Self::Quorum => TopologyKind::QUORUM,
            Self::Vip => TopologyKind::Sentinel {
                replicas: 1,
                sentinels: 1,
            },
        }
    }

    /// Whether a replica takes over when a primary dies.
    #[must_use]
    pub const fn fails_over(self) -> bool {
        matches!(self, Self::Sentinel | Self::Cluster)
    }
}

/// The lock under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// This library.
    Locktopus,
    /// The reference lock: a hash, a message on release, and then all waiters try again.
    R1,
    /// The rslock crate.
    Rslock,
    /// Redisson itself with its defaults: a watchdog, and a wait for replicas.
    Redisson,
    /// Broken on purpose: its release deletes the lock of any holder.
    BrokenRelease,
    /// Broken on purpose: it counts its validity from the reply.
    BrokenValidity,
    /// Broken on purpose: its tokens are a plain counter.
    BrokenTokens,
    /// Broken on purpose: a quorum whose restarted nodes vote at once.
    BrokenRejoin,
    /// Broken on purpose: its workers record events that cannot have happened.
    BrokenHistory,
    /// Broken on purpose: readers enter beside a writer.
    BrokenReaders,
    /// Broken on purpose: a semaphore grants permits that it does not have.
    BrokenPermits,
    /// Broken on purpose: it grants every token twice.
    BrokenTwins,
    /// Broken on purpose: its tokens fall.
    BrokenDescent,
    /// Broken on purpose: its resource accepts stale writes.
    BrokenGate,
    /// Broken on purpose: its resource rejects the holder now and then.
    BrokenDoor,
    /// Broken on purpose: its resource forgets an update now and then.
    BrokenStore,
    /// Broken on purpose: holders never hear that their lease has ended.
    BrokenSilence,
    /// Broken on purpose: holders hear late that their lease has ended.
    BrokenSignal,
    /// Broken on purpose: it extends a lease that has ended.
    BrokenRevival,
    /// Broken on purpose: a release wakes no waiter, and waiters do not poll.
    BrokenWakeUp,
    /// Broken on purpose: a fair lock whose waiters just retry.
    BrokenOrder,
    /// Broken on purpose: it leaves a key behind for each grant.
    BrokenCleanUp,
}

named!(
    Subject: Locktopus = "locktopus", R1 = "r1", Rslock = "rslock", Redisson = "redisson", BrokenRelease = "broken-release",
    BrokenValidity = "broken-validity", BrokenTokens = "broken-tokens", BrokenRejoin = "broken-rejoin",
    BrokenHistory = "broken-history", BrokenReaders = "broken-readers", BrokenPermits = "broken-permits", BrokenTwins = "broken-twins", BrokenDescent = "broken-descent", BrokenGate = "broken-gate", BrokenDoor = "broken-door", BrokenStore = "broken-store", BrokenSilence = "broken-silence", BrokenSignal = "broken-signal", BrokenRevival = "broken-revival", BrokenWakeUp = "broken-wake-up", BrokenOrder = "broken-order", BrokenCleanUp = "broken-clean-up",
);

impl Subject {
    /// Whether the checker is meant to catch this lock.
    #[must_use]
    pub const fn is_broken(self) -> bool {
        !matches!(
            self,
            Self::Locktopus | Self::R1 | Self::Rslock | Self::Redisson
        )
    }

    /// Why it cannot be tested on such servers, if it cannot.
    #[must_use]
    pub const fn cannot(self, place: Place, quorum: bool) -> Option<&'static str> {
        match (self, place) {
            (Self::Locktopus, Place::Quorum) if !quorum => Some("a mode with `quorum = true`"),
            (
                Self::Locktopus,
                Place::Standalone | Place::Sentinel | Place::Cluster | Place::Vip,
            ) if quorum => Some("topology quorum"),
            (Self::BrokenRejoin, Place::Quorum) => None,
            (Self::BrokenRejoin, _) => Some("topology quorum"),
            (Self::Locktopus, _) => None,
            (_, Place::Quorum) => Some("a topology with one primary for each lock"),
            (Self::Rslock, Place::Sentinel | Place::Cluster) => Some(
                "a lock library that knows Sentinel and clusters; rslock takes plain addresses",
            ),
            _ => None,
        }
    }

    /// Why it cannot be tested with this fault or with options of ours, if it cannot.
    #[must_use]
    pub const fn cannot_do(self, fault: Verb, has_options: bool) -> Option<&'static str> {
        match (self, fault) {
            (Self::Redisson, _) if has_options => {
                Some("a mode without options: Redisson waits for replicas by itself")
            }
            (Self::Redisson, Verb::StopHolder) => Some(
                "a fault to servers: Redisson runs in a process beside the one that is stopped",
            ),
            _ => None,
        }
    }
}
