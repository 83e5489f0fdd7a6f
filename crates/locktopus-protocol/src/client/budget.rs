//! How long each step of a client may take.
//!
//! Two options decide, and every other limit follows from them here. So no step gives up long
//! before the user would, and none runs forever:
//!
//! * One answer takes at most `command_timeout`: to a command, a subscription, a `PING` on a
//!   doubtful connection, or a question of the client's own (`ROLE`, `CLUSTER SLOTS`, sentinels).
//! * One connection takes at most `connect_timeout`: credentials from their provider, TCP, TLS,
//!   login, database, client name. For a name with several addresses, this holds for each.
//! * Finding the primary through sentinels, asked all at once, takes two connections and two
//!   answers.
//! * The slot map of one cluster node takes one connection and one answer.

use std::time::Duration;

use crate::client::options::ConnectOptions;

/// An upper limit for every step, so that sums of durations from the options cannot overflow.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The limits that follow from [`ConnectOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    answer: Duration,
    connection: Duration,
}

impl Budget {
    /// The limits for a client with these options. Any duration is valid: more than an hour counts
    /// as one hour.
    #[must_use]
    pub fn of(options: &ConnectOptions) -> Self {
        Self {
            answer: options.command_timeout.min(LONGEST),
            connection: options.connect_timeout.min(LONGEST),
        }
    }

    /// The limit for one answer on an open connection.
    #[must_use]
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// The limit for one connection until it is usable.
    #[must_use]
    pub fn connection(&self) -> Duration {
        self.connection
    }

    /// The limit for one answer on a connection that may have to be opened first.
    #[must_use]
    pub fn answer_of_anybody(&self) -> Duration {
        self.connection + self.answer
    }

    /// The limit for finding the primary: the sentinels' answers, and that server's own.
    #[must_use]
    pub fn primary_of_sentinels(&self) -> Duration {
        self.answer_of_anybody() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::options::{HostPort, Servers};

    fn budget(connect: Duration, command: Duration) -> Budget {
        let (host, port) = (String::new(), 1);
        let servers = Servers::Standalone(HostPort { host, port });
        Budget::of(&ConnectOptions {
            connect_timeout: connect,
            command_timeout: command,
            ..ConnectOptions::new(servers)
        })
    }

    #[test]
    fn no_option_is_too_long_or_too_short() {
        let extremes = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(1),
            Duration::from_secs(u64::MAX / 2),
            Duration::MAX,
        ];
        for connect in extremes {
            for command in extremes {
                let budget = budget(connect, command);
                assert!(budget.primary_of_sentinels() <= LONGEST * 4);
                assert!(budget.connection() <= connect && budget.answer() <= command);
            }
        }
    }
}
