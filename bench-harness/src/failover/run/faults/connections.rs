//! Faults of connections and scripts.

use std::fmt;
use std::time::Duration;

use locktopus_servers::topology::{Node, Resp, TopologyError};
use tokio::time::{Instant, sleep};

use super::primary::LOOK;
use crate::failover::plan::Verb;
use crate::failover::run::RunError;
use crate::failover::run::fault_context::{FaultContext, RECOVERY};

/// How long a healthy server may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// The thing that the fault removes from every server that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Scripts,
    Connections,
    Subscriptions,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scripts => "scripts",
            Self::Connections => "connections for commands",
            Self::Subscriptions => "connections for messages",
        })
    }
}

impl Taken {
    /// The thing that a fault removes, if it is one of these.
    pub(super) const fn by(verb: Verb) -> Option<Self> {
        Some(match verb {
            Verb::FlushScripts => Self::Scripts,
            Verb::KillConnections => Self::Connections,
            Verb::KillSubscriptions => Self::Subscriptions,
            _ => return None,
        })
    }

    /// The server's name for connections of this kind.
    const fn sort(self) -> Option<&'static str> {
        match self {
            Self::Scripts => None,
            Self::Connections => Some("normal"),
            Self::Subscriptions => Some("pubsub"),
        }
    }

    /// How much of it a server has.
    async fn there(self, node: &Node, within: Duration) -> Result<u64, TopologyError> {
        let Some(sort) = self.sort() else {
            // The connections of a replica date from its time as a primary; no worker uses them.
            let role = node
                .command_within(within, &["INFO", "replication"])
                .await?;
            if role
                .text()
                .lines()
                .any(|line| line.trim_end() == "role:slave")
            {
                return Ok(0);
            }
            let memory = node.command_within(within, &["INFO", "memory"]).await?;
            return scripts(&memory.text())
                .ok_or_else(|| TopologyError::odd(node.name(), "INFO", &memory));
        };
        let list = ["CLIENT", "LIST", "TYPE", sort];
        let list = node.command_within(within, &list).await?.text();
        Ok(list.lines().filter(|client| is_of_a_worker(client)).count() as u64)
    }

    /// Removes it from a server; returns how much it removed.
    async fn take(self, node: &Node, within: Duration) -> Result<u64, TopologyError> {
        let there = self.there(node, within).await?;
        let Some(sort) = self.sort() else {
            let flush = ["SCRIPT", "FLUSH"];
            node.command_within(within, &flush).await?;
            return Ok(there);
        };
        let kill = ["CLIENT", "KILL", "TYPE", sort];
        match node.command_within(within, &kill).await? {
            // This closes other connections too, such as those of sentinels. That harms no lock.
            Resp::Int(closed) => Ok(there.min(closed.unsigned_abs())),
            odd => Err(TopologyError::odd(node.name(), "CLIENT KILL", &odd)),
        }
    }

    /// The condition for the fault to have an effect.
    fn to_take_away(self) -> String {
        format!("{self} to take away")
    }

    /// The error if no server had any of it, so that the fault touched no lock.
    fn nowhere(self) -> RunError {
        let missing = TopologyError::NotReached {
            what: self.to_take_away(),
            within: Duration::ZERO,
            last_seen: "no server has any".to_owned(),
        };
        missing.into()
    }
}

/// The number of scripts that a server knows.
fn scripts(memory: &str) -> Option<u64> {
    let mut lines = memory.lines();
    let number = lines.find_map(|line| line.strip_prefix("number_of_cached_scripts:"));
    number?.trim().parse().ok()
}

/// Whether the connection in this line is a worker's: not a sentinel's, and not our own.
fn is_of_a_worker(client: &str) -> bool {
    let mut fields = client.split(' ');
    !fields.any(|field| field.starts_with("name=sentinel-") || field == "cmd=client|list")
}

/// Removes it from every server.
pub(super) async fn everywhere(
    context: &mut FaultContext<'_>,
    what: Taken,
) -> Result<(), RunError> {
    until_there(context, what).await?;
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault("all")?;
    from_all(context, what).await
}

/// Removes it from every server. All of them answer sooner or later: a server that becomes a
/// replica breaks its connections.
pub(super) async fn from_all(context: &mut FaultContext<'_>, what: Taken) -> Result<(), RunError> {
    let nodes = context.place.nodes();
    until_taken(what, async || {
        let mut answers = Vec::new();
        for node in nodes {
            answers.push(what.take(node, ANSWERS_WITHIN).await);
        }
        answers
    })
    .await?;
    context.note("took away");
    Ok(())
}

/// Repeats until something was removed and every server answered. What was seen before may be gone
/// by now, such as the connections of a process that was just killed, and clients reconnect.
async fn until_taken(
    what: Taken,
    mut take: impl AsyncFnMut() -> Vec<Result<u64, TopologyError>>,
) -> Result<u64, RunError> {
    let mut taken = 0;
    until(&what.to_take_away(), async || {
        let (more, silent) = sum(take().await)?;
        taken += more;
        Ok((taken > 0 && silent == 0, taken))
    })
    .await
}

/// The same for a nemesis: on the servers that answer, because some may be dead or frozen. A server
/// that refuses is an error. Returns whether anything was removed. If not, a silent server may have
/// it, or clients are about to reconnect.
pub(super) async fn where_reached(
    context: &mut FaultContext<'_>,
    what: Taken,
    within: Duration,
) -> Result<bool, RunError> {
    let nodes = context.place.nodes().iter();
    let taking = nodes.map(|node| what.take(node, within));
    let answers = futures_util::future::join_all(taking).await;
    let (taken, _) = sum(answers)?;
    context.note("took away");
    Ok(taken > 0)
}

/// How much was removed, and how many servers did not answer.
fn sum(answers: Vec<Result<u64, TopologyError>>) -> Result<(u64, u64), TopologyError> {
    let (mut taken, mut silent) = (0, 0);
    for answer in answers {
        match answer {
            Ok(more) => taken += more,
            Err(TopologyError::NoAnswer { .. } | TopologyError::Connection { .. }) => silent += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((taken, silent))
}

/// Whether a server that answers has any of it.
pub(super) async fn is_there(context: &FaultContext<'_>, what: Taken, within: Duration) -> bool {
    let nodes = context.place.nodes().iter();
    let looking = nodes.map(|node| what.there(node, within));
    let there = futures_util::future::join_all(looking).await;
    there.into_iter().flatten().any(|there| there > 0)
}

/// Waits until a server has any of it: clients reconnect after an earlier fault.
pub(super) async fn until_there(context: &FaultContext<'_>, what: Taken) -> Result<(), RunError> {
    until(&what.to_take_away(), async || {
        let there = is_there(context, what, ANSWERS_WITHIN).await;
        Ok((there, there))
    })
    .await?;
    Ok(())
}

/// Closes the connections for messages while the address leads to the replica. The replica accepts
/// subscriptions like a primary, and delivers what is published on the primary. Connections for
/// commands stay where they are.
pub(super) async fn mislead(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, primary) = context.target().await?;
    let replica = context
        .place
        .nodes()
        .iter()
        .find(|node| node.addr() != primary.addr());
    let (Some(vip), Some(replica)) = (context.vip, replica) else {
        return Err(TopologyError::NotReached {
            what: "a replica behind an address".to_owned(),
            within: std::time::Duration::ZERO,
            last_seen: "no such servers".to_owned(),
        }
        .into());
    };
    // Clients reconnect after an earlier turn.
    until("subscriptions on the primary", async || {
        let there = Taken::Subscriptions.there(primary, ANSWERS_WITHIN).await?;
        Ok((there > 0, there))
    })
    .await?;
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault(replica.name())?;
    let (since, before) = (Instant::now(), vip.led_to(replica.addr()));
    vip.point_at(replica.addr());
    let misled = async {
        let closed = Taken::Subscriptions.take(primary, ANSWERS_WITHIN).await?;
        if closed == 0 {
            return Err(Taken::Subscriptions.nowhere());
        }
        // Gives clients time to notice, and to connect where the address leads. A client that
        // checks the server's role before it subscribes leaves at once.
        until("clients come to the replica", async || {
            let came = vip.led_to(replica.addr()) - before;
            let is_over = since.elapsed() >= context.cell.scenario.lasts;
            Ok((came > 0 && is_over, came))
        })
        .await
    };
    let misled = misled.await;
    vip.point_at(primary.addr());
    context.note("points at the primary again");
    misled.map(drop)
}

/// Polls until a condition holds, and returns the last observation.
pub(super) async fn until<T: fmt::Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<(bool, T), TopologyError>,
) -> Result<T, RunError> {
    let give_up = Instant::now() + RECOVERY;
    loop {
        let (is_so, seen) = look().await?;
        if is_so {
            return Ok(seen);
        }
        if Instant::now() >= give_up {
            let missing = TopologyError::NotReached {
                what: what.to_owned(),
                within: RECOVERY,
                last_seen: format!("{seen:?}"),
            };
            return Err(missing.into());
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workers_have_what_counts() {
        let client = |name: &str, command: &str| {
            format!("id=7 addr=127.0.0.1:5 name={name} age=1 cmd={command} user=default")
        };
        for (name, command) in [("process-3", "evalsha"), ("", "ping"), ("", "client|kill")] {
            assert!(is_of_a_worker(&client(name, command)), "{name} {command}");
        }
        assert!(!is_of_a_worker(&client("sentinel-1b2c-cmd", "ping")));
        assert!(!is_of_a_worker(&client("", "client|list")));
    }

    #[test]
    fn servers_say_how_many_scripts_they_know() {
        let memory = "# Memory\r\nnumber_of_cached_scripts:12\r\nnumber_of_functions:0\r\n";
        assert_eq!(scripts(memory), Some(12));
        assert_eq!(scripts("# Memory\r\n"), None);
    }

    fn gone() -> TopologyError {
        TopologyError::Connection {
            node: "node-1".to_owned(),
            command: "CLIENT".to_owned(),
            source: std::io::ErrorKind::ConnectionReset.into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_by_then_is_taken_when_it_is_there_again() {
        let mut answers = [
            vec![Ok(0), Ok(0)],
            vec![Ok(2), Err(gone())],
            vec![Ok(3), Ok(0)],
        ]
        .into_iter();
        let taken = until_taken(Taken::Connections, async || answers.next().unwrap());
        assert_eq!(taken.await.unwrap(), 5);
        let nothing = until_taken(Taken::Connections, async || vec![Ok(0)]);
        let said = nothing.await.unwrap_err().to_string();
        let named = "connections for commands to take away not reached within 60s";
        assert!(said.starts_with(named), "{said}");
    }

    #[test]
    fn servers_that_do_not_answer_are_no_errors_and_those_that_refuse_are() {
        let silent = || TopologyError::NoAnswer {
            node: "node-1".to_owned(),
            command: "CLIENT".to_owned(),
            within: ANSWERS_WITHIN,
        };
        let counted = sum(vec![Ok(2), Err(silent()), Ok(3), Err(gone())]);
        assert_eq!(counted.unwrap(), (5, 2));
        assert_eq!(sum(vec![Ok(0), Ok(0)]).unwrap(), (0, 0));
        let refuses = TopologyError::odd("node-1", "CLIENT KILL", &Resp::Int(-1));
        let refused = sum(vec![Ok(2), Err(silent()), Err(refuses)]);
        assert!(refused.unwrap_err().to_string().contains("CLIENT KILL"));
    }
}
