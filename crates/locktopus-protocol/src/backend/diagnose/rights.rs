//! Which rights a user lacks, all of them at once.
//!
//! A script ends at the first command that is refused, so the probe finds one missing right at a time. Where it found one,
//! a script without the right to write asks for all.

use std::collections::HashMap;

use locktopus_core::{Diagnosis, LockTarget, SafetyMode, Severity};
use tokio::time::{Instant, timeout_at};

use super::ask::finding;
use super::probe::NAME;
use crate::backend::context::Context;
use crate::client::{ChannelFlavour, ClientError, Reply, Route};

const SOURCE: &str = include_str!("rights.lua");

/// What locks need, and the checks that take one. `K` stands for a key, `C` for a channel.
const LOCKS: &[&str] = &[
    "time",
    "ping",
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
const PLAIN: &[&str] = &["publish C 1", "subscribe C", "unsubscribe C"];
const SHARDED: &[&str] = &["spublish C 1", "ssubscribe C", "sunsubscribe C"];
const CLUSTER: &[&str] = &["cluster slots", "asking"];
const REPLICATED: &[&str] = &["wait 0 1", "role"];
const QUARANTINE: &[&str] = &["info"];

/// What other uses need besides.
const OTHERS: &[(&str, &[&str])] = &[
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
];

/// Reports all that this user lacks of what locks need. `target` is the probe.
pub(super) async fn check(
    context: &Context,
    target: &LockTarget,
    deadline: Instant,
    out: &mut Diagnosis,
) {
    let asker = Asker::new(context, target, deadline);
    match asker.missing().await {
        Ok(missing) => out
            .findings
            .extend(missing.into_iter().map(|(severity, what, rights)| {
                let message = format!("{what}: {}", rights.join(" "));
                finding(severity, "permission", message)
            })),
        Err(error) => {
            let message = format!(
                "which rights are missing besides could not be found out, because a script that asks for them \
                 was refused ({error})"
            );
            out.findings
                .push(finding(Severity::Note, "unchecked", message));
        }
    }
}

/// What the server said to each command.
type Verdicts<'a> = HashMap<&'a str, String>;

/// Something that is missing: how bad that is, what it is missing for, and the rights.
type Missing = (Severity, String, Vec<String>);

struct Asker<'a> {
    context: &'a Context,
    route: Route,
    keys: Vec<String>,
    channels: Vec<String>,
    deadline: Instant,
}

impl<'a> Asker<'a> {
    fn new(context: &'a Context, target: &LockTarget, deadline: Instant) -> Self {
        let keys = context.keys(target);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let announced = keys.channel.iter().map(|name| text(name));
        let inbox = context.inbox(&keys).into_iter();
        let native = keys.native.iter().map(|name| text(name));
        Self {
            context,
            route: Route::Slot(keys.slot()),
            channels: announced.chain(inbox).chain(native).collect(),
            keys: keys.names.clone(),
            deadline,
        }
    }

    async fn missing(&self) -> Result<Vec<Missing>, ClientError> {
        let needed = self.needed();
        let others = OTHERS.iter().flat_map(|(_, commands)| *commands);
        let all: Vec<&str> = needed.iter().chain(others).copied().collect();
        let questions = all.iter().map(|command| {
            let names = if command.contains(" K") {
                &self.keys
            } else {
                &self.channels
            };
            (*command, names.first().map_or("", String::as_str))
        });
        let verdicts = self.ask(questions).await?;
        let verdicts: Verdicts<'_> = all.iter().copied().zip(verdicts).collect();
        let mut rights = lacking(&needed, &verdicts);
        rights.extend(self.places(&needed, &verdicts).await?);
        let mut absent: Vec<_> = all
            .iter()
            .filter(|command| verdicts.get(*command).is_some_and(|it| it == "absent"))
            .map(|command| name(command))
            .collect();
        absent.sort_unstable();
        absent.dedup();
        let mut missing = vec![
            (
                Severity::Danger,
                "this user lacks, for locks".to_owned(),
                rights,
            ),
            (
                Severity::Danger,
                "this server does not have".to_owned(),
                absent,
            ),
        ];
        for (what, commands) in OTHERS {
            let what = format!("this user lacks, for {what}");
            missing.push((Severity::Note, what, lacking(commands, &verdicts)));
        }
        missing.retain(|(.., rights)| !rights.is_empty());
        Ok(missing)
    }

    /// The commands that this client's locks need.
    fn needed(&self) -> Vec<&'static str> {
        let is_cluster = self.context.is_cluster();
        let messages = match self.context.flavour {
            ChannelFlavour::Plain => PLAIN,
            ChannelFlavour::Sharded => SHARDED,
        };
        let mode = match self.context.info.safety {
            SafetyMode::Replicated { .. } => REPLICATED,
            SafetyMode::Quarantine { .. } => QUARANTINE,
            _ => &[],
        };
        let cluster = if is_cluster { CLUSTER } else { &[] };
        [LOCKS, messages, mode, cluster].concat()
    }

    /// The keys and channels that this user may not use, as rights, if it may send a command for them.
    async fn places(
        &self,
        needed: &[&'static str],
        verdicts: &Verdicts<'_>,
    ) -> Result<Vec<String>, ClientError> {
        let mut missing = Vec::new();
        for (sign, place, names) in [('~', " K", &self.keys), ('&', " C", &self.channels)] {
            let permitted = |command: &&&str| {
                let verdict = verdicts.get(**command).map_or("", String::as_str);
                command.contains(place) && matches!(verdict, "may" | "place")
            };
            let Some(command) = needed.iter().find(permitted) else {
                continue;
            };
            let questions = names.iter().map(|name| (*command, name.as_str()));
            let answers = self.ask(questions).await?;
            let refused = names.iter().zip(answers);
            let refused = refused.filter(|(_, verdict)| verdict == "place");
            missing.extend(refused.map(|(name, _)| format!("{sign}{}", pattern(name))));
        }
        Ok(missing)
    }

    /// What the server says to each command for a key or channel of this name.
    async fn ask<'b>(
        &self,
        questions: impl Iterator<Item = (&'b str, &'b str)>,
    ) -> Result<Vec<String>, ClientError> {
        let mut args: Vec<Vec<u8>> = vec![b"EVAL".into(), SOURCE.into(), b"0".into()];
        for (command, place) in questions {
            let words = command.split(' ').map(|word| match word {
                "K" | "C" => place,
                word => word,
            });
            let words: Vec<Vec<u8>> = words.map(Into::into).collect();
            args.push(words.len().to_string().into());
            args.extend(words);
        }
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let asked = self.context.executor.client().command(self.route, &args);
        let late = |_| ClientError::MaybeExecuted("no answer in time".to_owned());
        let answer = timeout_at(self.deadline, asked).await.map_err(late)??;
        let Reply::Array(verdicts) = answer else {
            return Ok(Vec::new());
        };
        let word = |verdict| match verdict {
            Reply::Bytes(word) => String::from_utf8_lossy(&word).into_owned(),
            _ => String::new(),
        };
        Ok(verdicts.into_iter().map(word).collect())
    }
}

/// The commands that are not permitted, as rights.
fn lacking(commands: &[&str], verdicts: &Verdicts<'_>) -> Vec<String> {
    let denied = |command: &&&str| verdicts.get(**command).is_some_and(|it| it == "command");
    let denied = commands.iter().filter(denied);
    denied
        .map(|command| format!("+{}", name(command)))
        .collect()
}

/// A command's name, as rights have it.
fn name(command: &str) -> String {
    let mut words = command.split(' ');
    match (words.next(), words.next()) {
        (Some("cluster"), Some(sub)) => format!("cluster|{sub}"),
        (name, _) => name.unwrap_or_default().to_owned(),
    }
}

/// Names like this one.
fn pattern(name: &str) -> String {
    let before = name.find(NAME).map_or(name, |at| &name[..at]);
    format!("{before}*")
}
