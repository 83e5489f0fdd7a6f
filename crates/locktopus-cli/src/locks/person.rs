//! Identifies holders and waiters to people, as far as possible.

use std::sync::Once;
use std::time::{Duration, SystemTime};

use humantime::format_rfc3339_seconds;
use locktopus::{InstanceRecord, KnownInstances, Locktopus, OwnerId};
use serde::Serialize;

use crate::output::visible;

/// How many characters of another library's client id to show: enough to find it in that client's
/// log, too few to release its lock.
const SHOWN_OF_ID: usize = 8;

/// How a holder or waiter describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Person {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<u32>,
    /// When the process started, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<String>,
    /// The beginning of the client id, if another library made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) foreign_client: Option<String>,
}

impl Person {
    pub(super) fn of(owner: &OwnerId, who: &KnownInstances) -> Self {
        match who.of(owner) {
            Some(record) => Self::known(record),
            None => Self {
                foreign_client: foreign_client(owner),
                ..Self::default()
            },
        }
    }

    fn known(record: &InstanceRecord) -> Self {
        let started = record.started();
        Self {
            label: Some(visible(record.label()).into_owned()),
            host: record.host().map(|host| visible(host).into_owned()),
            process: record.process(),
            started: started.map(|time| format_rfc3339_seconds(time).to_string()),
            foreign_client: None,
        }
    }

    /// A short form, for tables.
    pub(crate) fn short(&self) -> Option<String> {
        let label = self.label.as_ref()?;
        Some(match &self.host {
            Some(host) => format!("{label}@{host}"),
            None => label.clone(),
        })
    }

    /// One line, for people.
    pub(crate) fn line(&self) -> Option<String> {
        if let Some(client) = &self.foreign_client {
            return Some(format!("client {client}... of another library"));
        }
        let mut line = self.label.clone()?;
        if let Some(host) = &self.host {
            line.push_str(&format!(" on {host}"));
        }
        if let Some(process) = self.process {
            line.push_str(&format!(", process {process}"));
        }
        if let Some(started) = &self.started {
            line.push_str(&format!(", started {started}"));
        }
        Some(line)
    }
}

/// Redisson's owner ids begin with the random id of its client.
fn foreign_client(owner: &OwnerId) -> Option<String> {
    let (uuid, thread) = std::str::from_utf8(owner.expose()).ok()?.split_once(':')?;
    let is_uuid = uuid.len() == 36
        && uuid.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    let foreign = is_uuid && !owner.is_native() && thread.parse::<i64>().is_ok();
    foreign.then(|| uuid[..SHOWN_OF_ID].to_owned())
}

/// Looks up labels. If that fails, warns once; locks can be inspected without them.
pub(crate) async fn ask<'a>(
    locks: &Locktopus,
    owners: impl IntoIterator<Item = &'a OwnerId>,
) -> KnownInstances {
    static ONCE: Once = Once::new();
    locks.who(owners).await.unwrap_or_else(|error| {
        ONCE.call_once(|| tracing::warn!("cannot read the labels of holders: {error}"));
        KnownInstances::default()
    })
}

/// The time this long ago, by this machine's clock, if it can represent that.
pub(super) fn since(time: Duration) -> Option<String> {
    let since = SystemTime::now().checked_sub(time)?;
    Some(format_rfc3339_seconds(since).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said() {
        let record = InstanceRecord::new("worker");
        let bare = Person::known(&record);
        assert_eq!(bare.short().as_deref(), Some("worker"));
        assert_eq!(bare.line().as_deref(), Some("worker"));
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_375_119);
        let whole = record.on_host("web-3").as_process(7).started_at(started);
        let whole = Person::known(&whole);
        assert_eq!(whole.short().as_deref(), Some("worker@web-3"));
        assert_eq!(
            whole.line().as_deref(),
            Some("worker on web-3, process 7, started 2026-11-22T19:18:39Z")
        );
        assert_eq!(Person::default().line(), None);
    }

    #[test]
    fn clients_of_another_library_are_told_by_the_beginning_of_their_id() {
        let told = |id: &str| {
            Person::of(
                &OwnerId::from_bytes(id.as_bytes()),
                &KnownInstances::default(),
            )
        };
        let java = told("3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c:71");
        assert_eq!(
            java.line().as_deref(),
            Some("client 3f2a91c4... of another library")
        );
        assert!(!serde_json::to_string(&java).unwrap().contains("0b0b"));
        for unknown in [
            "3f2a91c4-0b0b-8c70-a705-0c0c0c0c0c0c:71",
            "3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c",
            "3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c:x",
            "3f2a91c4x0b0b-4c70-9705-0c0c0c0c0c0c:71",
            "a value of its own",
        ] {
            assert_eq!(told(unknown), Person::default(), "{unknown}");
        }
    }
}
