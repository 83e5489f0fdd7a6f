//! The text of scripts with keys and arguments, for those who run them elsewhere.

use locktopus_protocol::scripts::Script;

use super::{KEEP_TOKEN_MS, Wire, number};
use crate::sim::ask::{Ask, Mode};

impl Wire {
    /// The script of a request, its keys and its arguments.
    pub(in crate::sim) fn text(
        &self,
        process: usize,
        ask: &Ask,
    ) -> (Option<&'static Script>, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let script = match ask {
            Ask::Acquire { mode, .. } => Some(&self.programs(*mode).scripts.acquire),
            Ask::Release { mode, .. } => Some(&self.programs(*mode).scripts.release),
            Ask::Extend { mode, .. } => Some(&self.programs(*mode).scripts.extend),
            Ask::Subscribe | Ask::Unsubscribe => None,
        };
        let (keys, arguments) = self
            .call(process, ask)
            .map(|(_, keys, arguments)| (keys, arguments))
            .unwrap_or_default();
        (script, keys, arguments)
    }

    /// The script that ends all holds, or that looks at the lock.
    pub(in crate::sim) fn other_text(
        &self,
        mode: Mode,
        evict: bool,
    ) -> (&'static Script, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let scripts = self.programs(mode).scripts;
        let keys = self.layout.keys().to_vec();
        if !evict {
            return (&scripts.inspect, keys, Vec::new());
        }
        let tokens = number(i64::from(mode.has_tokens()));
        let publish = b"PUBLISH".to_vec();
        let arguments = vec![
            publish,
            self.announced.clone(),
            number(KEEP_TOKEN_MS),
            tokens,
        ];
        (&scripts.evict, keys, arguments)
    }

    /// Keys and arguments of the script for a latch of the same name.
    pub(in crate::sim) fn latch_text(
        &self,
        word: &str,
        operation: u64,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut keys = self.latch.clone();
        if word == "read" {
            return (keys, Vec::new());
        }
        keys.push(format!("locktopus_done:{{it}}:latch:{operation}").into_bytes());
        let arguments = vec![
            word.as_bytes().to_vec(),
            number(2),
            b"PUBLISH".to_vec(),
            self.announced.clone(),
            number(120_000),
        ];
        (keys, arguments)
    }

    /// Keys and arguments of the script that changes the number of a semaphore.
    pub(in crate::sim) fn counter_text(
        &self,
        word: &str,
        change: i64,
        operation: u64,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut keys = self.layout.keys().to_vec();
        if word == "read" {
            return (keys, Vec::new());
        }
        keys.push(format!("locktopus_done:{{it}}:{operation}").into_bytes());
        let arguments = vec![
            word.as_bytes().to_vec(),
            number(change),
            b"PUBLISH".to_vec(),
            self.announced.clone(),
            number(120_000),
            number(KEEP_TOKEN_MS),
        ];
        (keys, arguments)
    }
}
