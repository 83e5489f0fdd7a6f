//! What the simulated clients and the judge know of scripts, keys and channels. Nothing else in the model does.

mod decode;
mod kind;
mod texts;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use locktopus_core::{LockKind, LockName, LockTarget};
use locktopus_protocol::Keys;
use locktopus_protocol::scripts::{KindScripts, Script};

use crate::lua::{Interpreter, Program};
use crate::redis::{Published, Reply, Server, Unsupported};
use crate::sim::ask::{Answer, Ask, Heard, Mode, Owner};
use crate::sim::kind::Kind;
use crate::sim::layout::Layout;
use crate::sim::patch::Patch;
use decode::decode;

/// How long a token stays after its last grant.
const KEEP_TOKEN_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// One lock on a server: its names and its scripts.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) layout: Layout,
    announced: Vec<u8>,
    inbox: Vec<u8>,
    native: Vec<u8>,
    /// A read-write lock has one for each half.
    programs: Vec<(Mode, Programs)>,
    channels: RefCell<BTreeMap<usize, Rc<[Vec<u8>; 3]>>>,
    /// The keys of a latch of the same name.
    latch: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Programs {
    scripts: &'static KindScripts,
    acquire: Program,
    release: Program,
    extend: Program,
}

/// What a script came to.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) answer: Answer,
    /// The server's clock as the answer tells it, in microseconds.
    pub(super) micros: Option<i64>,
    /// Keys touched without having been declared.
    pub(super) undeclared: Vec<Vec<u8>>,
    /// How often it read the server's clock.
    pub(super) clock_readings: usize,
    pub(super) published: Vec<Published>,
    pub(super) reply: Reply,
}

/// The script of a request, its keys and its arguments.
type Call<'p> = (&'p Program, Vec<Vec<u8>>, Vec<Vec<u8>>);

impl Wire {
    /// Loads the scripts of a kind, changed by `patch` if it is about one of them.
    pub(super) fn new(
        lua: &Interpreter,
        kind: Kind,
        patch: Option<&Patch>,
    ) -> Result<Self, Unsupported> {
        let name = LockName::new("it").map_err(|error| Unsupported {
            what: error.to_string(),
        })?;
        let bytes = |names: Vec<String>| names.into_iter().map(String::into_bytes).collect();
        let latch = Keys::of(&LockTarget::new(name.clone(), LockKind::Latch));
        let names = Keys::of(&LockTarget::new(name, kind.target()));
        let load = |script: &Script| match patch {
            Some(patch) => lua.load(&patch.apply(script)?),
            None => lua.load(script.source),
        };
        let load_all = |(mode, scripts): (Mode, &'static KindScripts)| {
            let programs = Programs {
                scripts,
                acquire: load(&scripts.acquire)?,
                release: load(&scripts.release)?,
                extend: load(&scripts.extend)?,
            };
            Ok((mode, programs))
        };
        let keys = bytes(names.names.clone());
        Ok(Self {
            layout: Layout::new(kind, keys),
            announced: names.channel.as_deref().unwrap_or_default().to_vec(),
            inbox: names.inbox.unwrap_or_default().into_bytes(),
            native: names.native.as_deref().unwrap_or_default().to_vec(),
            programs: kind
                .scripts()
                .into_iter()
                .map(load_all)
                .collect::<Result<_, _>>()?,
            channels: RefCell::default(),
            latch: bytes(latch.names),
        })
    }

    /// The channel on which releases are announced to everybody.
    pub(super) fn announced(&self) -> &[u8] {
        &self.announced
    }

    /// The channels that a process listens to: announcements, its inbox, and the one that marks natives.
    pub(super) fn channels(&self, process: usize) -> Rc<[Vec<u8>; 3]> {
        let mut channels = self.channels.borrow_mut();
        let known = channels.entry(process).or_insert_with(|| {
            let inbox = [self.inbox.as_slice(), format!("{process:032x}").as_bytes()].concat();
            Rc::new([self.announced.clone(), inbox, self.native.clone()])
        });
        Rc::clone(known)
    }

    /// Runs on a server what a process asks for.
    pub(super) fn run(
        &self,
        lua: &Interpreter,
        server: &mut Server,
        process: usize,
        ask: &Ask,
    ) -> Result<Ran, Unsupported> {
        let Some((program, keys, arguments)) = self.call(process, ask) else {
            return Ok(Ran::nothing());
        };
        let evaluation = lua.eval(server, program, &keys, &arguments)?;
        let (answer, micros) = decode(ask, &evaluation.reply);
        let mut undeclared = evaluation.undeclared;
        undeclared.retain(|key| !self.layout.may_touch(key));
        Ok(Ran {
            answer,
            micros,
            undeclared,
            clock_readings: evaluation.clock_readings,
            published: server.take_published(),
            reply: evaluation.reply,
        })
    }

    /// The script of a request, its keys and its arguments.
    fn call(&self, process: usize, ask: &Ask) -> Option<Call<'_>> {
        match ask {
            Ask::Acquire { mode, .. } => {
                let keys = self.layout.keys().to_vec();
                Some((
                    &self.programs(*mode).acquire,
                    keys,
                    self.acquire_arguments(process, ask),
                ))
            }
            Ask::Release {
                owner,
                mode,
                permits,
                sought,
            } => {
                let mut arguments = vec![
                    bytes(owner),
                    self.layout.kind().letter(*mode),
                    number(*permits),
                    b"PUBLISH".to_vec(),
                    self.announced.clone(),
                    number(KEEP_TOKEN_MS),
                    self.native.clone(),
                ];
                // A guess of the client that changes only the way through the script: right and wrong, with each lock.
                if bytes(owner)
                    .iter()
                    .map(|byte| u32::from(*byte))
                    .sum::<u32>()
                    % 2
                    == 0
                {
                    arguments.push(b"1".to_vec());
                }
                if let Some(sought) = sought {
                    arguments.resize(9, Vec::new());
                    let numbers = [sought.place_ms, sought.lease_ms, sought.tokens];
                    arguments.extend(numbers.map(number));
                    arguments.push(self.channels(process)[1].clone());
                }
                Some((
                    &self.programs(*mode).release,
                    self.layout.keys().to_vec(),
                    arguments,
                ))
            }
            Ask::Extend {
                owner,
                mode,
                permits,
                lease_ms,
            } => {
                let mut arguments = vec![number(*lease_ms), bytes(owner)];
                if *mode == Mode::Permits {
                    arguments.push(number(*permits));
                }
                let keys = self.layout.extended(*mode, owner);
                Some((&self.programs(*mode).extend, keys, arguments))
            }
            Ask::Subscribe | Ask::Unsubscribe => None,
        }
    }

    fn programs(&self, mode: Mode) -> &Programs {
        let wanted = self.programs.iter().find(|(known, _)| *known == mode);
        &wanted.unwrap_or(&self.programs[0]).1
    }

    fn acquire_arguments(&self, process: usize, ask: &Ask) -> Vec<Vec<u8>> {
        let Ask::Acquire {
            owner,
            mode,
            permits,
            lease_ms,
            not_after,
            tokens,
            floor,
            place_ms,
            recall,
            first,
        } = ask
        else {
            return Vec::new();
        };
        let mut arguments = vec![
            bytes(owner),
            number(*lease_ms),
            number(KEEP_TOKEN_MS),
            number(*not_after),
            self.layout.kind().letter(*mode),
            number(*permits),
            number(*tokens),
            number(*floor),
            b"PUBLISH".to_vec(),
        ];
        if let Some(place) = place_ms {
            arguments.extend([number(*place), self.channels(process)[1].clone()]);
        }
        if self.layout.kind() == Kind::Fair {
            arguments.resize(11, Vec::new());
            arguments.push(self.announced.clone());
        }
        if *recall && matches!(self.layout.kind(), Kind::Lock | Kind::Mutex) {
            arguments.resize(10, Vec::new());
            let inbox = self.channels(process)[1].clone();
            arguments.extend([inbox, Vec::new(), b"1".to_vec()]);
        }
        if *first && place_ms.is_some() && *mode == Mode::Exclusive {
            arguments.resize(13, Vec::new());
            arguments.push(b"1".to_vec());
        }
        arguments
    }

    /// What a message means for the process that listens.
    pub(super) fn heard(&self, published: &Published) -> Heard {
        if published.channel == self.announced {
            return Heard::Released;
        }
        let text = String::from_utf8_lossy(&published.message);
        match text.split_once(' ') {
            Some(("0", owner)) => Heard::Look {
                owner: owner.into(),
            },
            Some(("d", owner)) => Heard::PassedOver {
                owner: owner.into(),
            },
            Some(("w", owner)) => Heard::Wanted {
                owner: owner.into(),
            },
            Some((token, owner)) => match token.parse() {
                Ok(token) => Heard::Granted {
                    owner: owner.into(),
                    token,
                },
                Err(_) => Heard::Nonsense,
            },
            None => Heard::Nonsense,
        }
    }
}

impl Ran {
    fn nothing() -> Self {
        Self {
            answer: Answer::Done,
            micros: None,
            undeclared: Vec::new(),
            clock_readings: 0,
            published: Vec::new(),
            reply: Reply::Nil,
        }
    }
}

fn bytes(owner: &Owner) -> Vec<u8> {
    owner.as_bytes().to_vec()
}

fn number(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}
