//! A modelled server whose clock stands still, and direct calls of scripts.

use locktopus_model::lua::Interpreter;
use locktopus_model::redis::{Reply, ScriptTime, Server};
use locktopus_protocol::scripts;

/// A server, and what tests do to it.
pub(crate) struct Bench {
    lua: Interpreter,
    pub(crate) server: Server,
}

pub(crate) const ME: &str = "00000001-0000-8c70-a705-000000000000:4";
pub(crate) const OTHER: &str = "00000002-0000-8c70-a705-000000000000:4";
/// 2^53, the first number above which not every whole number can be represented.
pub(crate) const TOO_MUCH: i64 = 9_007_199_254_740_992;
pub(crate) const LOCK: [&str; 4] = ["k", "t", "q", "w"];

impl Bench {
    pub(crate) fn new() -> Self {
        let mut server = Server::default();
        server.script_time = ScriptTime::Frozen;
        Self {
            lua: Interpreter::new().unwrap(),
            server,
        }
    }

    pub(crate) fn command(&mut self, text: &str) -> Reply {
        let words = text.split(' ').map(|word| word.as_bytes().to_vec());
        self.server.command(&words.collect::<Vec<_>>()).unwrap()
    }

    pub(crate) fn eval(&mut self, script: &str, keys: &[&str], arguments: &[&str]) -> String {
        let mut all = scripts::all();
        let source = all.find(|it| it.name == script).expect(script).source;
        let program = self.lua.load(source).unwrap();
        let [keys, arguments] = [keys, arguments].map(|words| {
            words
                .iter()
                .map(|it| it.as_bytes().to_vec())
                .collect::<Vec<_>>()
        });
        let evaluation = self.lua.eval(&mut self.server, &program, &keys, &arguments);
        show(&evaluation.unwrap().reply)
    }

    /// Takes a lock or mutex, with the latest time to run and the number of tokens.
    pub(crate) fn take(&mut self, script: &str, owner: &str, latest: i64, tokens: i64) -> String {
        let (latest, tokens) = (latest.to_string(), tokens.to_string());
        let arguments = [
            owner, "60000", "7000", &latest, "x", "1", &tokens, "0", "PUBLISH",
        ];
        self.eval(script, &LOCK, &arguments)
    }

    /// The messages published since the last call.
    pub(crate) fn said(&mut self) -> Vec<String> {
        let said = self.server.take_published().into_iter();
        said.map(|it| {
            let [channel, message] =
                [it.channel, it.message].map(|it| String::from_utf8(it).unwrap());
            format!("{channel} {message}")
        })
        .collect()
    }

    pub(crate) fn fail(&mut self, at: usize, line: &str) {
        self.server.script_fault = Some((at, line.to_owned()));
    }
}

pub(crate) fn show(reply: &Reply) -> String {
    match reply {
        Reply::Int(number) => number.to_string(),
        Reply::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Array(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        Reply::Error(line) => line.clone(),
        other => format!("{other:?}"),
    }
}
