//! A real server beside a modelled one: both get the same commands and must give the same replies.

pub(crate) mod alike;
pub(crate) mod grammar;
pub(crate) mod wire;

use std::time::Instant;

use alike::{SPARE, alike, sorted, text};
use locktopus_model::lua::Interpreter;
use locktopus_model::redis::{Reply, ScriptTime, Server};
use locktopus_servers::topology::{Deployment, ProviderKind, Spec, TopologyKind, start};
use wire::Connection;

/// The two servers.
pub(crate) struct Pair {
    pub(crate) real: Connection,
    pub(crate) modelled: Server,
    pub(crate) lua: Interpreter,
    started: Instant,
    started_at: i64,
    /// The commands since the last clean start, to report a difference.
    pub(crate) history: Vec<String>,
    /// The server that `real` talks to.
    pub(crate) deployment: Deployment,
}

impl Pair {
    pub(crate) async fn start() -> Self {
        let spec = Spec::new(TopologyKind::Standalone);
        let deployment = start(ProviderKind::Plain, &spec).await.unwrap();
        let mut real = Connection::open(deployment.nodes()[0].addr());
        let time = real.ask(&words(&["TIME"]));
        let part = |place: usize| {
            let text = String::from_utf8(time.items()[place].bytes().to_vec()).unwrap();
            text.parse::<i64>().unwrap()
        };
        let started_at = part(0) * 1_000_000 + part(1);
        let mut modelled = Server::default();
        modelled.script_time = ScriptTime::Frozen;
        Self {
            real,
            modelled,
            lua: Interpreter::new().unwrap(),
            started: Instant::now(),
            started_at,
            history: Vec::new(),
            deployment,
        }
    }

    /// Sets the modelled clock to the real one.
    pub(crate) fn tick(&mut self) {
        let elapsed = i64::try_from(self.started.elapsed().as_micros()).unwrap();
        self.modelled.clock = self.started_at + elapsed;
    }

    /// Sends a command to both, and compares the replies.
    pub(crate) fn command(&mut self, command: &[Vec<u8>]) {
        self.tick();
        let modelled = self.modelled.command(command).unwrap();
        let real = self.real.ask(command);
        self.compare(shown(command), &real, &modelled);
    }

    /// Runs a script on both, and compares the replies.
    pub(crate) fn script(&mut self, source: &str, keys: &[Vec<u8>], args: &[Vec<u8>]) -> Reply {
        self.tick();
        let program = self.lua.load(source).unwrap();
        let modelled = self
            .lua
            .eval(&mut self.modelled, &program, keys, args)
            .unwrap();
        let mut command = words(&["EVAL", source, &keys.len().to_string()]);
        command.extend_from_slice(keys);
        command.extend_from_slice(args);
        let real = self.real.ask(&command);
        self.compare(shown(&command), &real, &modelled.reply);
        modelled.reply
    }

    fn compare(&mut self, sent: String, real: &Reply, modelled: &Reply) {
        self.history
            .push(format!("{sent}\n    -> {}", text(modelled)));
        // The members of a set and the fields of a large hash have no fixed order.
        let sets = ["\"SMEMBERS\"", "\"HGETALL\"", "\"EVAL\" \"return"];
        let any_order = sets.iter().any(|set| sent.starts_with(set));
        let same = if any_order {
            alike(&sorted(real), &sorted(modelled), SPARE)
        } else {
            alike(real, modelled, SPARE)
        };
        let last = &self.history[self.history.len().saturating_sub(40)..];
        let (real, modelled) = (text(real), text(modelled));
        assert!(
            same,
            "{}\nreal server: {real}\nmodel:       {modelled}",
            last.join("\n")
        );
    }

    /// Compares all keys, then removes them on both sides.
    pub(crate) fn compare_dumps_and_clear(&mut self) {
        self.tick();
        let now = self.modelled.clock / 1_000;
        let keys: Vec<(Vec<u8>, &str)> = self
            .modelled
            .keys
            .iter(now)
            .map(|(key, entry)| (key.to_vec(), entry.value.type_name()))
            .collect();
        let count = self.real.ask(&words(&["DBSIZE"])).as_int();
        assert_eq!(
            count,
            i64::try_from(keys.len()).ok(),
            "{}",
            self.history.join("\n")
        );
        for (key, kind) in keys {
            let read: &[&str] = match kind {
                "string" => &["GET"],
                "hash" => &["HGETALL"],
                "list" => &["LRANGE", "0", "-1"],
                "set" => &["SMEMBERS"],
                _ => &["ZRANGE", "0", "-1", "WITHSCORES"],
            };
            let mut command = words(read);
            command.insert(1, key.clone());
            self.command(&command);
            self.command(&[b"PTTL".to_vec(), key]);
        }
        self.real.ask(&words(&["FLUSHALL"]));
        self.modelled.keys.clear();
        self.history.clear();
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn shown(command: &[Vec<u8>]) -> String {
    let words = command
        .iter()
        .map(|word| format!("{:?}", String::from_utf8_lossy(word)));
    words.collect::<Vec<_>>().join(" ")
}
