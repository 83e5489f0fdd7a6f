//! Random calls of lock scripts, as clients make them, for comparing the model with a real server.

use std::rc::Rc;

use locktopus_protocol::scripts::{
    LATCH, LATCH_READ, PERMITS_COUNTER, PERMITS_READ, SEMAPHORE_COUNTER, SEMAPHORE_READ, Script,
};

use crate::Rng;
use crate::lua::Interpreter;
use crate::redis::Unsupported;
use crate::sim::ask::{Ask, Mode, Owner, Sought};
use crate::sim::kind::Kind;
use crate::sim::wire::Wire;

/// One call of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The script's name.
    pub script: &'static str,
    /// The script's text.
    pub source: String,
    /// Its keys.
    pub keys: Vec<Vec<u8>>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
}

/// Makes random calls on one lock, by a few owners who come again and again.
#[derive(Debug)]
pub struct Calls {
    kind: Kind,
    wire: Wire,
}

/// Processes that make calls. Those with even numbers listen.
const PROCESSES: u64 = 4;
/// Leases in milliseconds, far apart from each other and from sums of [`LAPSES`].
const LEASES: [i64; 3] = [60_000, 100_000, 200_000];
/// For how long places are kept, in milliseconds.
const PLACES: [i64; 2] = [50_000, 250_000];
/// Times that may pass between two calls, in milliseconds.
pub const LAPSES: [i64; 4] = [35_000, 35_000, 70_000, 140_000];

impl Calls {
    /// Prepares calls on a lock of this kind.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the model cannot load its scripts.
    pub fn new(kind: Kind) -> Result<Self, Unsupported> {
        let lua = Interpreter::new().map_err(|error| Unsupported {
            what: error.to_string(),
        })?;
        Ok(Self {
            kind,
            wire: Wire::new(&lua, kind, None)?,
        })
    }

    /// The channels of those processes that listen.
    #[must_use]
    pub fn listened(&self) -> Vec<Vec<u8>> {
        let listening = (0..PROCESSES)
            .step_by(2)
            .filter_map(|process| usize::try_from(process).ok());
        listening
            .flat_map(|process| self.wire.channels(process).to_vec())
            .collect()
    }

    /// The next call, at a server time in microseconds.
    pub fn next(&self, rng: &mut Rng, clock: i64) -> Call {
        let process = rng.below(PROCESSES);
        let owner = self.owner(rng, process);
        let mode = match self.kind {
            Kind::Lock | Kind::Mutex | Kind::Fair => Mode::Exclusive,
            Kind::ReadWrite => *rng.pick(&[Mode::Read, Mode::Read, Mode::Write]),
            Kind::Semaphore | Kind::Permits => Mode::Permits,
        };
        // An owner always wants the same.
        let permits = if mode == Mode::Permits {
            1 + i64::from(owner.len().is_multiple_of(2))
        } else {
            1
        };
        let lease_ms = *rng.pick(&LEASES);
        let tokens = if mode.has_tokens() {
            *rng.pick(&[1, 1, 16])
        } else {
            0
        };
        let ask = match rng.below(20) {
            0..10 => Ask::Acquire {
                owner,
                mode,
                permits,
                lease_ms,
                not_after: *rng.pick(&[0, 0, clock + 1_000_000, clock - 1_000_000]),
                tokens,
                floor: *rng.pick(&[0, 0, 0, clock + 5_000]),
                place_ms: *rng.pick(&[None, Some(PLACES[0]), Some(PLACES[1])]),
                recall: rng.permille(400),
                first: rng.permille(300),
            },
            10..15 => Ask::Release {
                owner,
                mode,
                permits,
                sought: rng.permille(500).then(|| Sought {
                    place_ms: *rng.pick(&PLACES),
                    lease_ms,
                    tokens,
                }),
            },
            15..17 => Ask::Extend {
                owner,
                mode,
                permits,
                lease_ms,
            },
            17 => return self.counted(rng),
            18 => return self.other(rng, mode, true),
            _ => return self.other(rng, mode, false),
        };
        let process = usize::try_from(process).unwrap_or(0);
        let (script, keys, arguments) = self.wire.text(process, &ask);
        let (script, source) = known(script);
        Call {
            script,
            source,
            keys,
            arguments,
        }
    }

    fn owner(&self, rng: &mut Rng, process: u64) -> Owner {
        let serial = 4 + rng.below(2) * 2;
        if self.kind == Kind::Permits {
            return Rc::from(format!("{process:06}-{serial:07}\0\0"));
        }
        Rc::from(format!(
            "{process:08x}-0001-8c70-a705-000000000000:{}",
            self.kind.number(serial)
        ))
    }

    /// Looks at the lock, or ends all holds.
    fn other(&self, rng: &mut Rng, mode: Mode, evict: bool) -> Call {
        let evict = evict && rng.permille(400);
        let (script, keys, arguments) = self.wire.other_text(mode, evict);
        let (script, source) = known(Some(script));
        Call {
            script,
            source,
            keys,
            arguments,
        }
    }

    /// Changes the number of a semaphore; of other kinds, looks at the lock.
    fn counted(&self, rng: &mut Rng) -> Call {
        let scripts: [&Script; 2] = match self.kind {
            Kind::Semaphore => [&SEMAPHORE_READ, &SEMAPHORE_COUNTER],
            Kind::Permits => [&PERMITS_READ, &PERMITS_COUNTER],
            _ => return self.other(rng, Mode::Exclusive, false),
        };
        let words = [
            "read", "init", "init", "resize", "add", "add", "drain", "delete",
        ];
        let word = *rng.pick(&words);
        let script = scripts[usize::from(word != "read")];
        let (keys, arguments) = self
            .wire
            .counter_text(word, rng.between(-1, 3), rng.below(4));
        Call {
            script: script.name,
            source: script.source.to_owned(),
            keys,
            arguments,
        }
    }

    /// Changes the number of a semaphore; nothing for other kinds.
    pub(super) fn counter(&self, word: &str, number: i64, operation: u64) -> Option<Call> {
        let script = match self.kind {
            Kind::Semaphore => &SEMAPHORE_COUNTER,
            Kind::Permits => &PERMITS_COUNTER,
            _ => return None,
        };
        let (keys, arguments) = self.wire.counter_text(word, number, operation);
        Some(Call {
            script: script.name,
            source: script.source.to_owned(),
            keys,
            arguments,
        })
    }

    /// Reads or changes a latch of the same name.
    pub(super) fn latch(&self, rng: &mut Rng) -> Call {
        let word = *rng.pick(&["read", "init", "count_down", "delete"]);
        let script: &Script = if word == "read" { &LATCH_READ } else { &LATCH };
        let (keys, arguments) = self.wire.latch_text(word, rng.below(4));
        Call {
            script: script.name,
            source: script.source.to_owned(),
            keys,
            arguments,
        }
    }
}

fn known(script: Option<&'static Script>) -> (&'static str, String) {
    script.map_or(("", String::new()), |script| {
        (script.name, script.source.to_owned())
    })
}
