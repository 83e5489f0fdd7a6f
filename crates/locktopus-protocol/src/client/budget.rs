//! How long each step may take that a client takes by itself.
//!
//! Two options say it, and every other limit follows from them here, so that no step gives up long
//! before the user would, and none goes on for ever:
//!
//! | step | limit |
//! |---|---|
//! | one answer: to a command, a question of the client's own (`ROLE`, `CLUSTER SLOTS`, a sentinel's), a subscription, a `PING` on a connection in doubt | `command_timeout` |
//! | one connection: credentials from their provider, TCP, TLS, login, database, client name; of a name with several addresses, to each of them | `connect_timeout` |
//! | the primary through sentinels, who are all asked at once: two connections, two answers | the sum |
//! | the slot map of one cluster node: one connection, one answer | the sum |

use std::time::Duration;

use crate::client::options::ConnectOptions;

/// No step has more time, whatever the options say; sums of steps then stay far from overflow.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The limits that follow from [`ConnectOptions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    answer: Duration,
    connection: Duration,
}

impl Budget {
    /// The limits for a client with these options. No duration is too long: more than an hour
    /// counts as one.
    #[must_use]
    pub fn of(options: &ConnectOptions) -> Self {
        Self {
            answer: options.command_timeout.min(LONGEST),
            connection: options.connect_timeout.min(LONGEST),
        }
    }

    /// One answer on a connection that is up.
    #[must_use]
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// One connection until it can be used.
    #[must_use]
    pub fn connection(&self) -> Duration {
        self.connection
    }

    /// One answer on a connection that may have to be made first.
    #[must_use]
    pub fn answer_of_anybody(&self) -> Duration {
        self.connection + self.answer
    }

    /// The way to the primary through sentinels: what they say, and whether that server agrees.
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
