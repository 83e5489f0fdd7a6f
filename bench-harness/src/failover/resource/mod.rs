//! The resource behind the locks: a small store in the runner's process, reached over a loopback
//! socket.
//!
//! Each lock has the same data twice: once protected by the lock alone, and once behind a
//! [`FenceGate`], as `docs/fencing.md` tells users to do. The resource announces each entry, so
//! that a fault can follow a grant at once.

mod chain;
mod wire;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locktopus::{Fence, FenceGate};
use locktopus_history::{LostUpdates, SetLoss};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use chain::Chain;
pub(super) use wire::{Ask, Heads, Reply};

/// Announcements that may pile up before a slow listener misses some.
const ANNOUNCED: usize = 4_096;

/// The flaw of a store that is broken on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Nothing.
    #[default]
    None,
    /// It ignores tokens.
    AdmitsAnybody,
    /// It rejects every seventh writer, even with a valid token.
    RefusesSome,
    /// It acknowledges every seventh update without doing it.
    ForgetsSome,
}

/// A flawed store gets every decision with this interval wrong.
const EVERY: u64 = 7;

/// A holder has just entered.
#[derive(Clone, Debug)]
pub(super) struct Entered {
    pub(super) lock: String,
    pub(super) worker: u32,
}

/// The store and its socket. Dropping it closes the socket.
#[derive(Debug)]
pub(super) struct Resource {
    addr: SocketAddr,
    store: Arc<Store>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Store {
    gate: FenceGate,
    flaw: Flaw,
    state: Mutex<State>,
    entered: broadcast::Sender<Entered>,
}

#[derive(Debug, Default)]
struct State {
    locks: HashMap<String, Data>,
    decisions: u64,
    /// The number of the decision about each worker's last entry.
    entries: HashMap<u32, u64>,
}

#[derive(Debug, Default)]
struct Data {
    plain: Chain,
    fenced: Chain,
}

impl Resource {
    /// Opens the store.
    pub(super) async fn open(flaw: Flaw) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let store = Arc::new(Store {
            gate: FenceGate::new(),
            flaw,
            state: Mutex::default(),
            entered: broadcast::channel(ANNOUNCED).0,
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&store)));
        Ok(Self {
            addr,
            store,
            serving,
        })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Announces entries from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Entered> {
        self.store.entered.subscribe()
    }

    /// A number that grows with each entry, as of this worker's last entry; 0 if it never entered.
    pub(super) fn last_entry(&self, worker: u32) -> u64 {
        let state = self.store.state();
        state.entries.get(&worker).copied().unwrap_or(0)
    }

    /// Lost updates, with and without checked tokens.
    pub(super) fn lost_updates(&self) -> LostUpdates {
        let mut all = LostUpdates::default();
        for data in self.store.state().locks.values() {
            add(&mut all.unchecked, data.plain.loss());
            add(&mut all.checked, data.fenced.loss());
        }
        all
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Adds up losses of several sets.
pub(super) fn add(all: &mut SetLoss, one: SetLoss) {
    all.acknowledged += one.acknowledged;
    all.refused += one.refused;
    all.unknown += one.unknown;
    all.lost += one.lost;
    all.surplus += one.surplus;
    // Element numbers mean something only within one set.
    all.lost_elements.clear();
}

async fn serve(listener: TcpListener, store: Arc<Store>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(talk(stream, Arc::clone(&store)));
    }
}

/// Serves one worker until it disconnects.
async fn talk(mut stream: TcpStream, store: Arc<Store>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (from, mut to) = stream.split();
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let reply = match serde_json::from_str(&line) {
            Ok(ask) => store.answer(ask),
            Err(error) => Reply::Bad {
                reason: error.to_string(),
            },
        };
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        to.write_all(&line).await?;
    }
    Ok(())
}

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, ask: Ask) -> Reply {
        match ask {
            Ask::Enter {
                lock,
                worker,
                fence,
            } => {
                // Announced first: a fault may be waiting to follow this grant.
                let _ = self.entered.send(Entered {
                    lock: lock.clone(),
                    worker,
                });
                self.enter(lock, worker, fence)
            }
            Ask::Append {
                lock,
                read,
                fence,
                only_fenced,
            } => self.append(lock, read, fence, only_fenced),
        }
    }

    /// Reading shows the token to the gate as well: otherwise an older holder could write after the
    /// read, and the write would be missing in what was read.
    fn enter(&self, lock: String, worker: u32, fence: Option<String>) -> Reply {
        let mut state = self.state();
        let order = state.decide();
        state.entries.insert(worker, order);
        let data = state.locks.entry(lock).or_default();
        match fence.map(|word| self.admit(&word, order)) {
            None | Some(Ok(true)) => Reply::Heads {
                heads: Heads {
                    plain: data.plain.head(),
                    fenced: data.fenced.head(),
                },
                order,
            },
            Some(Ok(false)) => Reply::Refused { order },
            Some(Err(bad)) => bad,
        }
    }

    fn append(&self, lock: String, read: Heads, fence: Option<String>, only_fenced: bool) -> Reply {
        let mut state = self.state();
        let order = state.decide();
        let data = state.locks.entry(lock).or_default();
        if !data.plain.knows(read.plain) || !data.fenced.knows(read.fenced) {
            return Reply::Bad {
                reason: format!("no holder can have read {read:?}"),
            };
        }
        if !only_fenced {
            data.plain.append(read.plain);
        }
        match fence.map(|word| self.admit(&word, order)) {
            None => Reply::Done { order },
            Some(Ok(true)) => {
                if self.flaw == Flaw::ForgetsSome && order.is_multiple_of(EVERY) {
                    data.fenced.pretend_to_append();
                } else {
                    data.fenced.append(read.fenced);
                }
                Reply::Done { order }
            }
            Some(Ok(false)) => {
                data.fenced.refuse();
                Reply::Refused { order }
            }
            Some(Err(bad)) => bad,
        }
    }

    /// Whether the gate lets this holder in. The locked state makes check and write one step.
    fn admit(&self, word: &str, order: u64) -> Result<bool, Reply> {
        let fence: Fence = word.parse().map_err(|error| Reply::Bad {
            reason: format!("{error}"),
        })?;
        let admitted = self.gate.admit(&fence).is_ok();
        Ok(match self.flaw {
            Flaw::None | Flaw::ForgetsSome => admitted,
            Flaw::AdmitsAnybody => true,
            Flaw::RefusesSome => admitted && !order.is_multiple_of(EVERY),
        })
    }
}

impl State {
    const fn decide(&mut self) -> u64 {
        self.decisions += 1;
        self.decisions
    }
}

#[cfg(test)]
mod tests {
    use locktopus::{FencingToken, LockKind, LockName, LockTarget};

    use super::*;

    fn fence(token: u64) -> Option<String> {
        let target = LockTarget::new(LockName::new("a").unwrap(), LockKind::Reentrant);
        Some(Fence::new(&target, FencingToken::new(token).unwrap()).to_string())
    }

    #[tokio::test]
    async fn late_writers_are_kept_out_of_what_is_checked_only() {
        let resource = Resource::open(Flaw::None).await.unwrap();
        let store = &resource.store;
        let enter = |token| {
            store.answer(Ask::Enter {
                lock: "a".to_owned(),
                worker: 1,
                fence: fence(token),
            })
        };
        let append = |token, read| {
            store.answer(Ask::Append {
                lock: "a".to_owned(),
                read,
                fence: fence(token),
                only_fenced: false,
            })
        };
        let start = Heads::default();
        for (token, order) in [(1, 1), (2, 2)] {
            let heads = start;
            assert_eq!(enter(token), Reply::Heads { heads, order });
        }
        assert!(matches!(append(2, start), Reply::Done { .. }));
        assert!(matches!(append(1, start), Reply::Refused { .. }));
        assert!(matches!(enter(1), Reply::Refused { .. }));
        let lost = resource.lost_updates();
        assert_eq!((lost.unchecked.lost, lost.checked.lost), (1, 0));
        assert_eq!(lost.checked.refused, 1);
    }

    #[tokio::test]
    async fn nonsense_is_told_and_changes_nothing() {
        let resource = Resource::open(Flaw::None).await.unwrap();
        let ask = Ask::Append {
            lock: "a".to_owned(),
            read: Heads {
                plain: 7,
                fenced: 0,
            },
            fence: None,
            only_fenced: false,
        };
        assert!(matches!(resource.store.answer(ask), Reply::Bad { .. }));
        let ask = Ask::Enter {
            lock: "a".to_owned(),
            worker: 1,
            fence: Some("17".to_owned()),
        };
        assert!(matches!(resource.store.answer(ask), Reply::Bad { .. }));
        assert_eq!(resource.lost_updates(), LostUpdates::default());
    }
}
