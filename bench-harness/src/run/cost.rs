//! What the servers say they did, from their own counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use locktopus_protocol::{RedisClient, Reply};

use crate::model::ServerCost;
use crate::plan::Strategy;

/// Reads the counters of all primaries over one connection that no worker uses.
#[derive(Debug)]
pub(super) struct Counters {
    client: Arc<dyn RedisClient>,
}

/// The counters at one moment, summed over the primaries.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    calls: BTreeMap<String, u64>,
    cpu_ns: Option<u64>,
}

impl Counters {
    pub(super) async fn connect(url: &str) -> Result<Self, locktopus::ConnectError> {
        Ok(Self {
            client: locktopus::connect_client(url).await?,
        })
    }

    /// `None` if the servers do not tell.
    pub(super) async fn read(&self) -> Option<Reading> {
        let mut reading = Reading {
            cpu_ns: Some(0),
            ..Reading::default()
        };
        for node in self
            .client
            .command_on_primaries(&[b"INFO", b"everything"])
            .await
            .ok()?
        {
            let Ok(Reply::Bytes(text)) = node.reply else {
                return None;
            };
            reading.add(&String::from_utf8_lossy(&text));
        }
        Some(reading)
    }

    pub(super) async fn close(&self) {
        self.client.close().await;
    }
}

impl Reading {
    fn add(&mut self, info: &str) {
        let mut cpu = None;
        for line in info.lines() {
            let Some((name, value)) = line.trim().split_once(':') else {
                continue;
            };
            if let Some(command) = name.strip_prefix("cmdstat_") {
                let calls = value
                    .strip_prefix("calls=")
                    .and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
                *self.calls.entry(command.to_owned()).or_default() += calls.unwrap_or(0);
            } else if matches!(name, "used_cpu_user" | "used_cpu_sys") {
                let seconds: Option<f64> = value.parse().ok();
                cpu = seconds.map(|seconds| cpu.unwrap_or(0.0) + seconds);
            }
        }
        self.cpu_ns = match (self.cpu_ns, cpu) {
            (Some(sum), Some(seconds)) => Some(sum + (seconds * 1e9).round().max(0.0) as u64),
            _ => None,
        };
    }

    /// What happened between an earlier reading and this one.
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
            // A release deletes the lock in its script, and then sends a DEL for the key by which the
            // script knows a repeated request.
            commands += by_command.get("del").copied().unwrap_or(0) / 2;
        }
        ServerCost {
            commands,
            commands_with_scripts: Some(sum(&|_| true)),
            cpu_ns: self
                .cpu_ns
                .zip(earlier.cpu_ns)
                .map(|(now, then)| now.saturating_sub(then)),
            by_command,
        }
    }
}

/// What the harness, replicas and sentinels send, not the workers.
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
            | "role"
            | "select"
            | "readonly"
            | "pubsub"
    )
}

/// What arrives from clients, as opposed to what scripts call.
fn is_sent(name: &str, strategy: Strategy) -> bool {
    let script_or_subscription = matches!(
        name,
        "eval" | "evalsha" | "subscribe" | "unsubscribe" | "ssubscribe" | "sunsubscribe"
    );
    let own = match strategy {
        Strategy::Locktopus | Strategy::R1 => false,
        // Takes its locks by plain SET.
        Strategy::Rslock => name == "set",
        // Waits for replicas, where there are some.
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
