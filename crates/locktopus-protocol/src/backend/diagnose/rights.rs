//! Reports all rights that a user lacks, together.
//!
//! The probe stops at the first missing right, and it does not send every command: `DEL`, for
//! example, releases a mutex. So a script that may not write asks each primary about every command.

use std::collections::HashMap;

use locktopus_contract::{BackendError, Diagnosis, Finding, ReplicaNeed, SafetyMode, Severity};
use tokio::time::Instant;

use super::ask::{Answers, ask_all, finding};
use super::probe::{NAME, probe};
use crate::backend::context::Context;
use crate::client::{ChannelFlavour, ClientError, Reply};

const SOURCE: &str = include_str!("rights.lua");

/// The commands that locks and the checks need. `K` stands for a key, `C` for a channel.
const LOCKS: &[&str] = &[
    "time",
    "ping",
    "eval 0 0",
    "evalsha 0 0",
    "get K",
    "set K 1",
    "del K",
    "exists K",
    "pexpire K 1",
    "pexpireat K 1",
    "pttl K",
    "hset K 1 1",
    "hget K 1",
    "hdel K 1",
    "hexists K 1",
    "hkeys K",
    "hgetall K",
    "hmget K 1",
    "zadd K 1 1",
    "zrem K 1",
    "zpopmin K",
    "zrange K 0 0",
    "zcard K",
    "zrank K 1",
    "zscore K 1",
];
// Unsubscribing is permitted on every channel.
const PLAIN: &[&str] = &["publish C 1", "subscribe C", "unsubscribe 1"];
const SHARDED: &[&str] = &["spublish C 1", "ssubscribe C", "sunsubscribe 1"];
const CLUSTER: &[&str] = &["cluster slots", "asking"];
const REPLICATED: &[&str] = &["wait 0 1", "role"];
const QUARANTINE: &[&str] = &["info"];

/// Rights for other features, and rights that improve waiting.
const OTHERS: [(&str, &[&str]); 6] = [
    (
        "fair locks",
        &[
            "linsert K before 1 1",
            "lpos K 1",
            "lrange K 0 0",
            "lrem K 0 1",
            "rpush K 1",
        ],
    ),
    (
        "read-write locks",
        &["hlen K", "hsetnx K 1 1", "pexpiretime K"],
    ),
    ("semaphores", &["incrby K 1", "decrby K 1"]),
    (
        "lists of locks",
        &["scan 0", "type K", "hlen K", "strlen K"],
    ),
    ("guarded writes", &["persist K"]),
    ("waiters of other libraries", &["lindex K 0", "lpush K 1"]),
];

/// The question to every primary: may this user send each of these commands?
#[derive(Debug)]
pub(super) struct Rights {
    needed: Vec<&'static str>,
    others: Vec<(&'static str, Vec<&'static str>)>,
    keys: Vec<String>,
    channels: Vec<String>,
}

/// A server's answers: one word for each command, key and channel.
type Verdicts<'a> = HashMap<&'a str, String>;

impl Rights {
    /// Builds the question for this client's locks. `None` if no lock can have a name in its
    /// namespace.
    pub(super) fn new(context: &Context) -> Option<Self> {
        let names = context.keys(&probe(context, 0)?);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let announced = names.channel.iter().map(|name| text(name));
        let inbox = context.inbox(&names).into_iter();
        let native = names.native.iter().map(|name| text(name));
        let (messages, listeners) = match context.flavour {
            ChannelFlavour::Plain => (PLAIN, "pubsub numsub"),
            ChannelFlavour::Sharded => (SHARDED, "pubsub shardnumsub"),
        };
        let (mode, marks): (&[_], _) = match context.info.safety {
            SafetyMode::Replicated { need, .. } => {
                let asks_roles = usize::from(need != ReplicaNeed::One);
                (&REPLICATED[..=asks_roles], Some("locktopus_mark"))
            }
            SafetyMode::Quarantine { .. } => (QUARANTINE, Some("locktopus_history")),
            _ => (&[], None),
        };
        let mut needed = [LOCKS, messages, mode].concat();
        let mut others: Vec<_> = OTHERS.map(|(what, needs)| (what, needs.to_vec())).into();
        others.push(("hand-offs that ask who listens", vec![listeners]));
        if context.is_cluster() {
            needed.extend(CLUSTER);
            if mode == QUARANTINE {
                let once = "one quarantine for all slots of a server";
                others.push((once, vec!["cluster nodes"]));
            }
        }
        let marks = marks.map(str::to_owned);
        Some(Self {
            needed,
            others,
            keys: names.names.iter().cloned().chain(marks).collect(),
            channels: announced.chain(inbox).chain(native).collect(),
        })
    }

    /// Takes one round trip.
    pub(super) async fn ask(
        &self,
        context: &Context,
        deadline: Instant,
    ) -> Result<Answers, BackendError> {
        let mut args = vec!["EVAL".to_owned(), SOURCE.to_owned(), "0".to_owned()];
        for places in [&self.keys, &self.channels] {
            args.push(places.len().to_string());
            args.extend_from_slice(places);
        }
        args.push(self.needed.len().to_string());
        for command in self.commands() {
            let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            args.push(words.len().to_string());
            args.extend(words);
        }
        let args: Vec<_> = args.iter().map(String::as_bytes).collect();
        ask_all(&context.executor, &args, deadline).await
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().flat_map(|(_, commands)| commands);
        self.needed.iter().chain(others).copied()
    }

    /// Reports all rights that this user lacks, once if all servers agree.
    pub(super) fn check(&self, answers: Answers, diagnosis: &Diagnosis) -> Vec<Finding> {
        let is_away = |node: &str| {
            let mut primaries = diagnosis.primaries.iter();
            primaries.any(|primary| primary.address == node && !primary.answered)
        };
        let answers = answers.into_iter().filter(|(node, _)| !is_away(node));
        let mut said: Vec<_> = answers
            .map(|(node, answer)| (node, self.missing(answer)))
            .collect();
        if said.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            said.truncate(1);
        } else {
            for (node, findings) in &mut said {
                for found in findings {
                    found.message = format!("{node}: {}", found.message);
                }
            }
        }
        said.into_iter()
            .flat_map(|(_, findings)| findings)
            .collect()
    }

    fn missing(&self, answer: Result<Reply, ClientError>) -> Vec<Finding> {
        let verdicts = match answer {
            Ok(reply) => self.verdicts(reply),
            Err(error) => return unasked(&error),
        };
        let has = |command: &&str, said: &str| {
            verdicts
                .get(*command)
                .is_some_and(|verdict| verdict == said)
        };
        let those = |commands: &[&'static str], said: &str| -> Vec<_> {
            let those = commands.iter().filter(|command| has(command, said));
            those.map(|command| name(command)).collect()
        };
        let lacking = |commands: &[&'static str]| -> Vec<_> {
            let denied = those(commands, "command").into_iter();
            denied.map(|name| format!("+{name}")).collect()
        };
        let mut rights = lacking(&self.needed);
        for (sign, place, names) in [('~', " K", &self.keys), ('&', " C", &self.channels)] {
            // If no command is permitted, its keys and channels are unknown.
            let permitted = |it: &&str| it.contains(place) && (has(it, "may") || has(it, "place"));
            if self.needed.iter().any(permitted) {
                let refused = names.iter().filter(|name| has(&name.as_str(), "place"));
                rights.extend(refused.map(|name| format!("{sign}{}", pattern(name))));
            }
        }
        let for_locks = "this user lacks, for locks".to_owned();
        let absent = "this server does not have".to_owned();
        let mut missing = vec![
            (Severity::Danger, for_locks, rights),
            (Severity::Danger, absent, those(&self.needed, "absent")),
        ];
        for (what, commands) in &self.others {
            let lacks = format!("this user lacks, for {what}");
            let absent = format!("this server does not have, for {what}");
            missing.push((Severity::Note, lacks, lacking(commands)));
            missing.push((Severity::Note, absent, those(commands, "absent")));
        }
        missing.retain(|(.., rights)| !rights.is_empty());
        let found = missing.into_iter().map(|(severity, what, rights)| {
            finding(
                severity,
                "permission",
                format!("{what}: {}", rights.join(" ")),
            )
        });
        found.collect()
    }

    fn verdicts(&self, reply: Reply) -> Verdicts<'_> {
        let Reply::Array(said) = reply else {
            return Verdicts::new();
        };
        let said = said.into_iter().map(|word| match word {
            Reply::Bytes(word) => String::from_utf8_lossy(&word).into_owned(),
            _ => String::new(),
        });
        let places = self.keys.iter().chain(&self.channels).map(String::as_str);
        self.commands().chain(places).zip(said).collect()
    }
}

/// What is known if the question was refused.
fn unasked(error: &ClientError) -> Vec<Finding> {
    let message = format!(
        "the other rights of this user could not be checked: the script that asks for them was refused ({error})"
    );
    let unknown = finding(Severity::Note, "unchecked", message);
    match error {
        ClientError::Rejected { code, .. } if code == "NOPERM" => {
            let message = "this user lacks, for locks: +eval";
            vec![finding(Severity::Danger, "permission", message), unknown]
        }
        _ => vec![unknown],
    }
}

/// The name of a command as ACL rules write it.
fn name(command: &str) -> String {
    let mut words = command.split(' ');
    match (words.next(), words.next()) {
        (Some(name @ ("cluster" | "pubsub")), Some(sub)) => format!("{name}|{sub}"),
        (name, _) => name.unwrap_or_default().to_owned(),
    }
}

/// The pattern of similar names.
fn pattern(name: &str) -> String {
    let before = name.find(NAME).map_or(name, |at| &name[..at]);
    format!("{before}*")
}
