//! The work of the servers, from their own counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use locktopus_protocol::{RedisClient, Reply};

use crate::measure::model::{ScriptTimes, ServerCost};
use crate::measure::plan::Strategy;

/// Reads the counters of all primaries over connections that no worker uses.
#[derive(Debug)]
pub(super) struct Counters {
    /// One for each independent system: several for a quorum.
    clients: Vec<Arc<dyn RedisClient>>,
    /// Whether the statistics were reset for this run. Script times cannot be subtracted, so they
    /// mean nothing without a reset.
    afresh: bool,
}

/// The counters at one moment, summed over the primaries.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    calls: BTreeMap<String, u64>,
    cpu_ns: Option<u64>,
    /// Script times of the server that ran most scripts, and how many it ran.
    scripts: Option<(u64, ScriptTimes)>,
}

impl Counters {
    /// Connects. Resets the statistics of servers that the run started.
    pub(super) async fn connect(
        urls: &[String],
        ours: bool,
    ) -> Result<Self, locktopus::ConnectError> {
        let mut clients = Vec::new();
        for url in urls {
            clients.push(locktopus::connect_client(url).await?);
        }
        let mut counters = Self {
            clients,
            afresh: false,
        };
        counters.afresh = ours && counters.start_afresh().await;
        Ok(counters)
    }

    async fn start_afresh(&self) -> bool {
        let replies = self.on_primaries(&[b"CONFIG", b"RESETSTAT"]).await;
        replies.is_some_and(|replies| !replies.is_empty())
    }

    /// `None` if the servers do not report them.
    pub(super) async fn read(&self) -> Option<Reading> {
        let mut reading = Reading {
            cpu_ns: Some(0),
            ..Reading::default()
        };
        for reply in self.on_primaries(&[b"INFO", b"everything"]).await? {
            let Reply::Bytes(text) = reply else {
                return None;
            };
            reading.add(&String::from_utf8_lossy(&text));
        }
        if !self.afresh {
            reading.scripts = None;
        }
        Some(reading)
    }

    /// The answers of all primaries; `None` if one of them refuses.
    async fn on_primaries(&self, command: &[&[u8]]) -> Option<Vec<Reply>> {
        let mut replies = Vec::new();
        for client in &self.clients {
            for node in client.command_on_primaries(command).await.ok()? {
                replies.push(node.reply.ok()?);
            }
        }
        Some(replies)
    }

    pub(super) async fn close(&self) {
        for client in &self.clients {
            client.close().await;
        }
    }
}

impl Reading {
    fn add(&mut self, info: &str) {
        let mut cpu = None;
        let (mut scripts, mut times) = (0, None);
        for line in info.lines() {
            let Some((name, value)) = line.trim().split_once(':') else {
                continue;
            };
            if let Some(command) = name.strip_prefix("cmdstat_") {
                let calls = value
                    .strip_prefix("calls=")
                    .and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
                *self.calls.entry(command.to_owned()).or_default() += calls.unwrap_or(0);
                if command == "evalsha" {
                    scripts = calls.unwrap_or(0);
                }
            } else if name == "latency_percentiles_usec_evalsha" {
                times = script_times(value);
            } else if matches!(name, "used_cpu_user" | "used_cpu_sys") {
                let seconds: Option<f64> = value.parse().ok();
                cpu = seconds.map(|seconds| cpu.unwrap_or(0.0) + seconds);
            }
        }
        if let Some(times) = times
            && self.scripts.is_none_or(|(most, _)| scripts > most)
        {
            self.scripts = Some((scripts, times));
        }
        self.cpu_ns = match (self.cpu_ns, cpu) {
            (Some(sum), Some(seconds)) => Some(sum + (seconds * 1e9).round().max(0.0) as u64),
            _ => None,
        };
    }

    /// The cost between an earlier reading and this one.
    pub(super) fn since(&self, earlier: &Self, strategy: Strategy) -> ServerCost {
        let by_command: BTreeMap<String, u64> = self
            .calls
            .iter()
            .map(|(name, calls)| {
                (
                    name.clone(),
                    calls.saturating_sub(earlier.calls.get(name).copied().unwrap_or(0)),
                )
            })
            .filter(|(name, calls)| *calls > 0 && !is_noise(name))
            .collect();
        let sum = |filter: &dyn Fn(&str) -> bool| {
            by_command
                .iter()
                .filter(|(name, _)| filter(name))
                .map(|(_, n)| n)
                .sum()
        };
        let mut commands = sum(&|name| is_sent(name, strategy));
        if strategy == Strategy::Redisson {
            // A release deletes the lock in its script, then sends a DEL for the key that marks a
            // repeated request.
            commands += by_command.get("del").copied().unwrap_or(0) / 2;
        }
        ServerCost {
            commands,
            commands_with_scripts: Some(sum(&|_| true)),
            cpu_ns: self
                .cpu_ns
                .zip(earlier.cpu_ns)
                .map(|(now, then)| now.saturating_sub(then)),
            scripts: self.scripts.map(|(_, times)| times),
            by_command,
        }
    }
}

/// Parses `p50=3.007,p99=8.031,p99.9=20.095`, in microseconds.
fn script_times(text: &str) -> Option<ScriptTimes> {
    let at = |name: &str| {
        let mut parts = text.split(',').filter_map(|part| part.split_once('='));
        let micros: f64 = parts.find(|(key, _)| *key == name)?.1.parse().ok()?;
        Some((micros * 1e3).round().max(0.0) as u64)
    };
    Some(ScriptTimes {
        p50_ns: at("p50")?,
        p99_ns: at("p99")?,
    })
}

/// Commands of the harness, replicas and sentinels, not of the workers.
fn is_noise(name: &str) -> bool {
    let base = name.split('|').next().unwrap_or(name);
    matches!(
        base,
        "info"
            | "ping"
            | "hello"
            | "auth"
            | "client"
            | "command"
            | "replconf"
            | "psync"
            | "cluster"
            | "config"
            | "select"
            | "readonly"
            | "pubsub"
    )
}

/// Commands that clients send, as opposed to commands that scripts call.
fn is_sent(name: &str, strategy: Strategy) -> bool {
    let script_or_subscription = matches!(
        name,
        "eval" | "evalsha" | "subscribe" | "unsubscribe" | "ssubscribe" | "sunsubscribe"
    );
    let own = match strategy {
        // For waits on replicas: both follow the script in one pipeline, and no script calls them.
        Strategy::Locktopus => matches!(name, "wait" | "role"),
        Strategy::Bare | Strategy::R1 => false,
        // It takes its locks with plain SET.
        Strategy::Rslock => name == "set",
        // It waits for replicas, if there are any.
        Strategy::Redisson => name == "wait",
    };
    script_or_subscription || own
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# CPU\r\nused_cpu_sys:0.5\r\nused_cpu_user:1.25\r\n# Commandstats\r\n\
        cmdstat_evalsha:calls=10,usec=5,usec_per_call=0.50\r\ncmdstat_set:calls=7,usec=1\r\n\
        cmdstat_client|setname:calls=3,usec=1\r\ncmdstat_info:calls=2,usec=9\r\n";

    #[test]
    fn script_times_are_those_of_the_busiest_server() {
        let mut reading = Reading::default();
        for (calls, p50) in [(5, "9.0"), (70, "2.007"), (6, "8.0")] {
            reading.add(&format!(
                "cmdstat_evalsha:calls={calls},usec=1\r\n\
                 latency_percentiles_usec_evalsha:p50={p50},p99=31.103,p99.9=40.0\r\n"
            ));
        }
        let cost = reading.since(&Reading::default(), Strategy::Locktopus);
        let times = cost.scripts.unwrap();
        assert_eq!((times.p50_ns, times.p99_ns), (2_007, 31_103));
    }

    /// The script, the write that replicas must confirm, `WAIT` and `ROLE`; and the release.
    #[test]
    fn what_replicas_confirm_costs_five_commands() {
        let mut reading = Reading::default();
        reading.add(
            "cmdstat_evalsha:calls=20,usec=5\r\ncmdstat_eval:calls=10,usec=5\r\n\
             cmdstat_wait:calls=10,usec=5\r\ncmdstat_role:calls=10,usec=5\r\ncmdstat_get:calls=99,usec=5\r\n",
        );
        let cost = |strategy| reading.since(&Reading::default(), strategy).commands;
        assert_eq!(cost(Strategy::Locktopus), 10 * 5);
        assert_eq!(cost(Strategy::R1), 30);
    }

    #[test]
    fn only_what_workers_sent_counts() {
        let mut now = Reading {
            cpu_ns: Some(0),
            ..Reading::default()
        };
        now.add(INFO);
        let cost = now.since(
            &Reading {
                cpu_ns: Some(750_000_000),
                ..Reading::default()
            },
            Strategy::Locktopus,
        );
        assert_eq!((cost.commands, cost.commands_with_scripts), (10, Some(17)));
        assert_eq!(cost.cpu_ns, Some(1_000_000_000));
        assert_eq!(
            now.since(&Reading::default(), Strategy::Rslock).commands,
            17
        );
        now.add("cmdstat_del:calls=8,usec=1\r\ncmdstat_wait:calls=3,usec=1\r\n");
        let redisson = now.since(&Reading::default(), Strategy::Redisson);
        assert_eq!(redisson.commands, 10 + 3 + 8 / 2);
    }
}
