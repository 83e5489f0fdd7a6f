//! The two servers, real and modelled, that get the same steps.

use std::fmt;
use std::net::SocketAddr;

use locktopus_model::lua::Interpreter;
use locktopus_model::redis::{Reply, ScriptTime, Server};

use super::alike::{sorted, text};
use super::shim::{DUMP, LAPSE, shimmed};
use super::steps::{Listening, Shipped, Step};
use super::wire::Connection;

thread_local! {
    /// It keeps only compiled scripts between calls.
    static LUA: Interpreter = Interpreter::new().expect("an embedded Lua starts");
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A key in a dump.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    key: Vec<u8>,
    kind: String,
    value: String,
    left: i64,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            kind,
            value,
            left,
        } = self;
        write!(f, "'{}' {kind} {value}, {left} ms", key.escape_ascii())
    }
}

/// Whether the keys are the same, and remaining times differ by less than so many milliseconds.
pub(crate) fn same(real: &[Kept], modelled: &[Kept], spare: u64) -> bool {
    real.len() == modelled.len()
        && real.iter().zip(modelled).all(|(real, modelled)| {
            let left =
                (real.left < 0) == (modelled.left < 0) && real.left.abs_diff(modelled.left) < spare;
            left && (&real.key, &real.kind) == (&modelled.key, &modelled.kind)
                && same_value(&real.value, &modelled.value, spare)
        })
}

/// Whether the values are the same, except times in `1 <time in ms>`, which may differ a little:
/// scripts compute these from the remaining time of a key.
fn same_value(real: &str, modelled: &str, spare: u64) -> bool {
    let until = |text: &str| text.strip_prefix("1 ")?.parse::<u64>().ok();
    let (real, modelled) = (real.split('\''), modelled.split('\''));
    real.clone().count() == modelled.clone().count()
        && real.zip(modelled).all(|(real, modelled)| {
            let times = until(real).zip(until(modelled));
            real == modelled
                || times.is_some_and(|(real, modelled)| real.abs_diff(modelled) < spare)
        })
}

fn kept(key: Vec<u8>, kind: &str, left: i64, value: &Reply) -> Kept {
    let value = match (kind, value) {
        ("hash", Reply::Array(items)) => {
            let pairs = items.chunks(2).map(|pair| Reply::Array(pair.to_vec()));
            sorted(&Reply::Array(pairs.collect()))
        }
        ("set", value) => sorted(value),
        (_, value) => value.clone(),
    };
    Kept {
        key,
        kind: kind.to_owned(),
        value: text(&value),
        left,
    }
}

/// The seconds and microseconds of a time.
fn time(clock: i64) -> [Vec<u8>; 2] {
    [clock / 1_000_000, clock % 1_000_000].map(|part| part.to_string().into_bytes())
}

/// The modelled server.
#[derive(Debug)]
pub(crate) struct Modelled {
    pub(crate) server: Server,
    shims: Vec<String>,
}

impl Modelled {
    pub(crate) fn new(texts: &[Shipped], replid: &str) -> Self {
        let mut server = Server::default();
        server.script_time = ScriptTime::Frozen;
        replid.clone_into(&mut server.replid);
        Self {
            server,
            shims: texts.iter().map(|text| shimmed(text.source)).collect(),
        }
    }

    pub(crate) fn listen(&mut self, listening: &Listening) {
        let topic = (listening.sharded, listening.channel.clone());
        *self.server.listeners.entry(topic).or_default() += 1;
    }

    /// Runs a step and returns its reply. Ignore the reply to a lapse.
    pub(crate) fn run(&mut self, step: &Step) -> Reply {
        match step {
            Step::Call {
                script,
                keys,
                arguments,
                clock,
            } => {
                self.server.clock = self.server.clock.max(*clock);
                let arguments = [&arguments[..], &time(*clock)].concat();
                LUA.with(|lua| {
                    let program = lua.load(&self.shims[*script]).unwrap();
                    let ended = lua.eval(&mut self.server, &program, keys, &arguments);
                    ended.unwrap().reply
                })
            }
            Step::Command(words) => self.server.command(words).unwrap(),
            Step::Lapse(millis) => {
                self.server.clock += millis * 1_000;
                Reply::Nil
            }
        }
    }

    pub(crate) fn dump(&mut self) -> Vec<Kept> {
        let keys: Vec<(Vec<u8>, &str)> = self
            .server
            .keys
            .iter(self.server.now())
            .map(|(key, entry)| (key.to_vec(), entry.value.type_name()))
            .collect();
        let mut all: Vec<Kept> = Vec::with_capacity(keys.len());
        for (key, kind) in keys {
            let mut read = words(match kind {
                "string" => &["GET"],
                "hash" => &["HGETALL"],
                "list" => &["LRANGE", "0", "-1"],
                "set" => &["SMEMBERS"],
                _ => &["ZRANGE", "0", "-1", "WITHSCORES"],
            });
            read.insert(1, key.clone());
            let value = self.server.command(&read).unwrap();
            let left = self.server.command(&[b"PTTL".to_vec(), key.clone()]);
            let left = left.unwrap().as_int().unwrap();
            all.push(kept(key, kind, left, &value));
        }
        all.sort();
        all
    }
}

/// The real server.
#[derive(Debug)]
pub(crate) struct Real {
    connection: Connection,
    addr: SocketAddr,
    digests: Vec<Vec<u8>>,
    pub(crate) replid: String,
}

impl Real {
    /// Connects, and removes all keys.
    pub(crate) fn connect(addr: SocketAddr, texts: &[Shipped]) -> Self {
        let mut connection = Connection::open(addr);
        let mut load = |source: &str| {
            let answer = connection.ask(&words(&["SCRIPT", "LOAD", source]));
            assert!(!answer.bytes().is_empty(), "{answer:?}: {source}");
            answer.bytes().to_vec()
        };
        let shims = texts.iter().map(|text| load(&shimmed(text.source)));
        let mut digests: Vec<_> = shims.collect();
        digests.extend([load(LAPSE), load(DUMP)]);
        let info = connection.ask(&words(&["INFO", "replication"]));
        let info = String::from_utf8_lossy(info.bytes()).into_owned();
        let replid = info.lines().find_map(|l| l.strip_prefix("master_replid:"));
        let mut real = Self {
            connection,
            addr,
            digests,
            replid: replid.unwrap().trim().to_owned(),
        };
        real.clear();
        real
    }

    pub(crate) fn clear(&mut self) {
        self.connection.ask(&words(&["FLUSHALL"]));
    }

    /// Adds listeners.
    pub(crate) fn listen(&self, listening: &[Listening]) {
        let clients = listening.iter().map(|one| one.client).max();
        for client in 0..clients.map_or(0, |client| client + 1) {
            let mut heard = Connection::open(self.addr);
            for one in listening.iter().filter(|one| one.client == client) {
                let how = if one.sharded {
                    "SSUBSCRIBE"
                } else {
                    "SUBSCRIBE"
                };
                heard.ask(&[how.as_bytes().to_vec(), one.channel.clone()]);
            }
            // Something has to read the messages off the wire.
            std::thread::spawn(move || heard.drain());
        }
    }

    fn eval(&self, digest: usize, keys: &[Vec<u8>], arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let count = keys.len().to_string().into_bytes();
        let head = [b"EVALSHA".to_vec(), self.digests[digest].clone(), count];
        [&head[..], keys, arguments].concat()
    }

    /// Sends a step, and a dump after it if wanted. Read the replies later, in this order.
    pub(crate) fn send(&mut self, step: &Step, dumped: bool) {
        let scripts = self.digests.len() - 2;
        let command = match step {
            Step::Call {
                script,
                keys,
                arguments,
                clock,
            } => self.eval(*script, keys, &[&arguments[..], &time(*clock)].concat()),
            Step::Command(words) => words.clone(),
            Step::Lapse(millis) => self.eval(scripts, &[], &[millis.to_string().into_bytes()]),
        };
        self.connection.put(&command);
        if dumped {
            let dump = self.eval(scripts + 1, &[], &[]);
            self.connection.put(&dump);
        }
    }

    pub(crate) fn flush(&mut self) {
        self.connection.flush();
    }

    /// Reads the next reply.
    pub(crate) fn answer(&mut self) -> Reply {
        self.connection.reply()
    }

    /// Reads the next reply as a dump.
    pub(crate) fn dumped(&mut self) -> Vec<Kept> {
        let dump = self.connection.reply();
        let mut all: Vec<Kept> = dump
            .items()
            .iter()
            .map(|key| {
                let [name, kind, left, value] = key.items() else {
                    panic!("{dump:?}");
                };
                let kind = String::from_utf8_lossy(kind.bytes()).into_owned();
                kept(name.bytes().to_vec(), &kind, left.as_int().unwrap(), value)
            })
            .collect();
        assert!(matches!(dump, Reply::Array(_)), "{dump:?}");
        all.sort();
        all
    }
}
