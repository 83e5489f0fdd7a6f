//! Scripts of the reference locks, sent as their users would: by digest, or in full if the server
//! does not know the digest.

use std::sync::LazyLock;

use locktopus_protocol::{ClientError, RedisClient, Reply, Route};

/// A script, and its digest on servers.
pub(super) struct Script {
    source: &'static str,
    digest: LazyLock<String>,
}

impl Script {
    /// A script; `digest` must be that of `source`; see [`script!`].
    pub(super) const fn new(source: &'static str, digest: fn() -> String) -> Self {
        Self {
            source,
            digest: LazyLock::new(digest),
        }
    }

    /// Runs it on the server of `keys`, which must share a slot. Its reply must be a number.
    pub(super) async fn run(
        &self,
        client: &dyn RedisClient,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<i64, &'static str> {
        let slot = Route::Slot(locktopus_protocol::slot::key_slot(keys[0]));
        let count = keys.len().to_string();
        let mut command: Vec<&[u8]> = vec![b"EVALSHA", self.digest.as_bytes(), count.as_bytes()];
        command.extend(keys.iter().chain(args));
        let reply = match client.command(slot, &command).await {
            Err(ClientError::Rejected { code, .. }) if code == "NOSCRIPT" => {
                (command[0], command[1]) = (b"EVAL", self.source.as_bytes());
                client.command(slot, &command).await
            }
            reply => reply,
        };
        match reply {
            Ok(Reply::Int(value)) => Ok(value),
            _ => Err("backend"),
        }
    }
}

/// A [`Script`] of this text.
macro_rules! script {
    ($source:literal) => {
        super::script::Script::new($source, || {
            sha1_smol::Sha1::from($source).digest().to_string()
        })
    };
}

pub(super) use script;
