//! Quarantine: nothing is granted while leases may still run that the server does not know of.
//!
//! The scripts decide, by the replication id of the server they run on and a record beside the
//! locks (`lua/part/quarantine.lua`). A missing record may be a lost one, so a slot that is used
//! for the first time is quarantined too, unless the client has observed its server for long
//! enough: this module does so.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus_contract::{BackendError, BackendErrorKind, Executed, lock};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::client::{ClientError, NodeReply, Reply};
use crate::execution::call::{Call, OnSplit};
use crate::execution::executor::{Executor, Way};
use crate::layout::slot;
use crate::wire::reply;

/// How often the client looks where the slots are, at least and at most.
const OFTENEST: Duration = Duration::from_millis(100);
const SELDOMEST: Duration = Duration::from_secs(1);

/// The field of `INFO replication` that changes with a failover.
const REPLICATION_ID: &str = "master_replid";

/// Quarantine of one backend.
#[derive(Debug)]
pub(crate) struct Quarantine {
    max_lease: Duration,
    longest: String,
    watched: Arc<Watched>,
    watcher: AbortHandle,
}

impl Quarantine {
    /// Looks at the servers once, and from then on in the background.
    ///
    /// # Errors
    ///
    /// If the servers may not be asked for their replication ids.
    pub(crate) async fn begin(
        executor: &Executor,
        max_lease: Duration,
        call_timeout: Duration,
    ) -> Result<Self, BackendError> {
        let watched = Arc::<Watched>::default();
        let look = Look {
            executor: executor.clone(),
            limit: call_timeout,
        };
        match look.at_servers().await {
            Ok(found) => watched.note(found, Instant::now()),
            Err(error) if error.kind() == BackendErrorKind::Denied => return Err(error),
            // Servers not seen yet count as new, so nothing is granted too early.
            Err(error) => tracing::debug!(%error, "cannot look whose slots are where yet"),
        }
        Ok(Self::with(look, max_lease, watched))
    }

    /// A copy for another client on this runtime. It has observed nothing yet, so it grants nothing
    /// too early.
    pub(crate) fn again(&self, executor: &Executor, call_timeout: Duration) -> Self {
        let look = Look {
            executor: executor.clone(),
            limit: call_timeout,
        };
        Self::with(look, self.max_lease, Arc::default())
    }

    fn with(look: Look, max_lease: Duration, watched: Arc<Watched>) -> Self {
        let every = (max_lease / 8).clamp(OFTENEST, SELDOMEST);
        let watcher = tokio::spawn(watch(look, Arc::clone(&watched), every)).abort_handle();
        Self {
            max_lease,
            longest: max_lease.as_millis().to_string(),
            watched,
            watcher,
        }
    }

    /// Runs a script that finds out whether its slot is quarantined before it grants anything.
    pub(crate) async fn run(
        &self,
        executor: &Executor,
        call: &Call<'_>,
    ) -> Result<Reply, BackendError> {
        let slot = executor.is_cluster().then_some(call.slot);
        // Whatever takes too long fails the command as well.
        let epoch = executor.client().configuration_epoch();
        let epoch = timeout_at(call.deadline, epoch).await.ok().flatten();
        let record = slot::key_in("locktopus_history", slot);
        let seen = self.watched.seen(slot, epoch, Instant::now());
        let more = [self.longest.as_bytes(), seen.as_bytes()];
        let call = Call {
            keys: &[call.keys, &[record.as_bytes()]].concat(),
            args: &[call.args, &more].concat(),
            on_split: OnSplit::Wait,
            ..*call
        };
        executor.run(Way::Usual, &call).await
    }

    /// # Errors
    ///
    /// If a lease is longer than all others will wait for.
    pub(crate) fn check(&self, executor: &Executor, lease: Duration) -> Result<(), BackendError> {
        if lease <= self.max_lease {
            return Ok(());
        }
        let message = format!(
            "a lease of {lease:?} is longer than quarantine_max_lease={:?}, for which nothing is granted after a failover",
            self.max_lease
        );
        Err(executor.error(BackendErrorKind::Refused, Executed::No, message))
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// A primary as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Primary {
    history: String,
    /// The newest epoch of the sentinels before it was asked: with a newer one it may be a primary
    /// again.
    epoch: Option<u64>,
    /// Its slots and the epoch in which it got them, as it writes them. `None` outside a cluster.
    domain: Option<Domain>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Domain {
    epoch: String,
    ranges: Vec<(u16, u16)>,
}

/// Since when each primary has been seen unchanged.
#[derive(Debug, Default)]
struct Watched {
    primaries: Mutex<Vec<(Primary, Instant)>>,
}

impl Watched {
    /// Records what all primaries said before `at`. A primary that is missing or changed starts
    /// from zero.
    fn note(&self, found: Vec<Primary>, at: Instant) {
        let mut known = lock(&self.primaries);
        let since = |primary: &Primary| {
            let before = known.iter().find(|(known, _)| known == primary);
            before.map_or(at, |(_, since)| *since)
        };
        let found = found.into_iter().map(|primary| {
            let since = since(&primary);
            (primary, since)
        });
        *known = found.collect();
    }

    /// `<history>=<ms>` of the primary that serves a slot, as scripts take it, and `@<epoch>` if
    /// there is one. Empty if the primary is not known, or was seen only in another epoch. The time
    /// is cut by a hundredth, in case this machine's clock is fast.
    fn seen(&self, slot: Option<u16>, epoch: Option<u64>, now: Instant) -> String {
        let known = lock(&self.primaries);
        let serves = |primary: &Primary| match (slot, &primary.domain) {
            (None, None) => true,
            (Some(slot), Some(domain)) => domain
                .ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&slot)),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let mut serving = known
            .iter()
            .filter(|(primary, _)| serves(primary) && primary.epoch == epoch);
        // Two primaries claim the slot: one of them is wrong, since an unknown time.
        let mut seen = match (serving.next(), serving.next()) {
            (Some((primary, since)), None) => {
                let age = now.saturating_duration_since(*since);
                let age = age - age / 100;
                format!("{}={}", primary.history, age.as_millis())
            }
            _ => String::new(),
        };
        if let Some(epoch) = epoch {
            seen.push_str(&format!("@{epoch}"));
        }
        seen
    }
}

async fn watch(look: Look, watched: Arc<Watched>, every: Duration) {
    loop {
        sleep(every).await;
        if look.executor.check_open().is_err() {
            return;
        }
        match look.at_servers().await {
            Ok(found) => watched.note(found, Instant::now()),
            // What was seen before is still true: a replication id never comes back.
            Err(error) => tracing::debug!(%error, "cannot look whose slots are where"),
        }
    }
}

/// Asks the primaries for their replication ids and slots.
#[derive(Debug)]
struct Look {
    executor: Executor,
    limit: Duration,
}

impl Look {
    async fn at_servers(&self) -> Result<Vec<Primary>, BackendError> {
        let epoch = self.executor.client().configuration_epoch();
        let epoch = timeout(self.limit, epoch).await.ok().flatten();
        let histories = self.ask(&[b"INFO", b"replication"]).await?;
        let cluster = self.executor.is_cluster();
        let nodes = if cluster {
            self.ask(&[b"CLUSTER", b"NODES"]).await?
        } else {
            Vec::new()
        };
        let mut found = Vec::new();
        for NodeReply { node, reply } in histories {
            let text = match reply {
                Ok(Reply::Bytes(text)) => String::from_utf8_lossy(&text).into_owned(),
                Err(ClientError::Rejected { code, message }) if code == "NOPERM" => {
                    return Err(self.denied(&message));
                }
                // Those that answer are known, at least.
                Ok(_) | Err(_) => continue,
            };
            let Some(history) = reply::info(&text, REPLICATION_ID) else {
                continue;
            };
            let own = nodes.iter().find(|other| other.node == node);
            let domain = match own.map(|own| &own.reply) {
                Some(Ok(Reply::Bytes(text))) => domain(&String::from_utf8_lossy(text)),
                _ => None,
            };
            if cluster && domain.is_none() {
                continue;
            }
            let history = history.to_owned();
            found.push(Primary {
                history,
                epoch,
                domain,
            });
        }
        Ok(found)
    }

    async fn ask(&self, command: &[&[u8]]) -> Result<Vec<NodeReply>, BackendError> {
        let client = self.executor.client();
        // Each server has as long as a call; together they need a moment more.
        match timeout(self.limit * 2, client.command_on_primaries(command)).await {
            Ok(answers) => answers.map_err(|error| self.executor.read_error(error)),
            Err(_) => {
                let message = "the servers did not tell their replication ids in time";
                Err(self
                    .executor
                    .error(BackendErrorKind::Timeout, Executed::No, message))
            }
        }
    }

    fn denied(&self, message: &str) -> BackendError {
        let message = format!(
            "safety=quarantine knows a failover by the server's replication id, which INFO replication tells; grant +info to \
             this user ({message})"
        );
        self.executor
            .error(BackendErrorKind::Denied, Executed::No, message)
    }
}

/// The answering node's own epoch and slots, from `CLUSTER NODES`. What is on its way to or from it
/// does not count.
fn domain(nodes: &str) -> Option<Domain> {
    let own = nodes.lines().find(|line| line.contains("myself"))?;
    let fields: Vec<_> = own.split_whitespace().collect();
    let ranges = fields.get(8..)?.iter().filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    });
    Some(Domain {
        epoch: (*fields.get(6)?).to_owned(),
        ranges: ranges.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(history: &str, slots: Option<(&str, &[(u16, u16)])>) -> Primary {
        Primary {
            history: history.to_owned(),
            epoch: None,
            domain: slots.map(|(epoch, ranges)| Domain {
                epoch: epoch.to_owned(),
                ranges: ranges.to_vec(),
            }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_vouches_for_as_long_as_it_has_seen_the_same() {
        let watched = Watched::default();
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(watched.seen(None, None, begin), "");
        watched.note(vec![primary("a", None)], begin);
        watched.note(vec![primary("a", None)], after(50));
        assert_eq!(watched.seen(None, None, after(100)), "a=99000");
        watched.note(vec![primary("b", None)], after(100));
        assert_eq!(watched.seen(None, None, after(100)), "b=0");
        // It was away in between: other histories may have been.
        watched.note(Vec::new(), after(101));
        assert_eq!(watched.seen(None, None, after(102)), "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_vouched_for_by_its_only_owner() {
        let watched = Watched::default();
        let begin = Instant::now();
        let later = begin + Duration::from_secs(100);
        let low = primary("a", Some(("1", &[(0, 99), (200, 200)])));
        let high = primary("b", Some(("2", &[(100, 199)])));
        watched.note(vec![low.clone(), high], begin);
        assert_eq!(watched.seen(Some(200), None, later), "a=99000");
        assert_eq!(watched.seen(Some(100), None, later), "b=99000");
        assert_eq!(watched.seen(Some(201), None, later), "");
        // It got slots, or got them back: the epoch tells.
        let again = primary("b", Some(("3", &[(100, 199)])));
        watched.note(vec![low.clone(), again], later);
        assert_eq!(watched.seen(Some(100), None, later), "b=0");
        assert_eq!(watched.seen(Some(0), None, later), "a=99000");
        let both = primary("c", Some(("4", &[(0, 0)])));
        watched.note(vec![low, both], later);
        assert_eq!(watched.seen(Some(0), None, later), "");
    }

    /// A primary that sentinels promoted again keeps its history.
    #[tokio::test(start_paused = true)]
    async fn nobody_vouches_across_epochs() {
        let watched = Watched::default();
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let of = |epoch| Primary {
            epoch: Some(epoch),
            ..primary("a", None)
        };
        watched.note(vec![of(1)], begin);
        assert_eq!(watched.seen(None, Some(1), after(100)), "a=99000@1");
        assert_eq!(watched.seen(None, Some(3), after(100)), "@3");
        watched.note(vec![of(3)], after(100));
        assert_eq!(watched.seen(None, Some(3), after(200)), "a=99000@3");
        assert_eq!(watched.seen(None, Some(1), after(200)), "@1");
        assert_eq!(watched.seen(None, None, after(200)), "");
    }

    #[test]
    fn servers_are_read() {
        let info = "# Replication\r\nrole:master\r\nmaster_replid:0123abcd\r\nmaster_replid2:9\r\n";
        assert_eq!(reply::info(info, REPLICATION_ID), Some("0123abcd"));
        assert_eq!(reply::info("# Replication\r\n", REPLICATION_ID), None);
        let nodes = "a 127.0.0.1:1@2 master - 0 0 9 connected 0-99\n\
                     b 127.0.0.1:3@4 myself,master - 0 0 7 connected 100-199 300 [93-<-a]\n";
        let domain = domain(nodes).unwrap();
        assert_eq!(domain.epoch, "7");
        assert_eq!(domain.ranges, [(100, 199), (300, 300)]);
        assert!(super::domain("b 127.0.0.1:3@4 master").is_none());
    }
}
