//! The instances behind owner ids: how an instance describes itself to people who inspect locks.

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::label::{LONGEST_HOST, LONGEST_LABEL, is_printable};

/// The first line of a record's text.
const VERSION: &str = "locktopus-instance1";
/// A record's text is never longer than this, in bytes. This library did not write a longer one.
const LONGEST_TEXT: usize = 4096;
/// The longest note, in characters.
const LONGEST_NOTE: usize = 256;

/// One `Locktopus`: the 48 random bits at the start of its owner ids. Twelve hex digits as text.
///
/// Not a secret: it is not enough to release a lock.
///
/// ```
/// use locktopus_contract::InstanceId;
/// let id = InstanceId::from_bytes([0, 1, 2, 3, 4, 0xff]);
/// assert_eq!((id.to_string().as_str(), id.bytes()[5]), ("0001020304ff", 0xff));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId([u8; 6]);

impl InstanceId {
    /// The instance with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}

/// How an instance describes itself.
///
/// All texts are printable, even those from other programs. Making a record replaces characters
/// that are unsafe in a terminal: control characters, and marks that change the direction of
/// writing.
///
/// ```
/// use locktopus_contract::InstanceRecord;
/// let record = InstanceRecord::new("billing\u{1b}[2J").on_host("web-3").as_process(4711);
/// assert_eq!(record.label(), "billing\u{fffd}[2J");
/// assert_eq!(InstanceRecord::parse(record.to_text().as_bytes()), Some(record));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRecord {
    label: String,
    host: Option<String>,
    process: Option<u32>,
    started: Option<SystemTime>,
    note: Option<String>,
}

impl InstanceRecord {
    /// A record with only a label.
    #[must_use]
    pub fn new(label: &str) -> Self {
        Self {
            label: printable(label, LONGEST_LABEL),
            host: None,
            process: None,
            started: None,
            note: None,
        }
    }

    /// Adds the host.
    #[must_use]
    pub fn on_host(mut self, host: &str) -> Self {
        self.host = Some(printable(host, LONGEST_HOST));
        self
    }

    /// Adds the number of the process on its host.
    #[must_use]
    pub fn as_process(mut self, process: u32) -> Self {
        self.process = Some(process);
        self
    }

    /// Adds the time when it was built, by its own clock, to the second.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use std::time::SystemTime;
    /// use locktopus_contract::InstanceRecord;
    /// let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_700);
    /// let record = InstanceRecord::new("billing").on_host("web-3").started_at(time);
    /// assert_eq!(record.started(), Some(time - Duration::from_millis(700)));
    /// assert_eq!((record.host(), record.process()), (Some("web-3"), None));
    /// ```
    #[must_use]
    pub fn started_at(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.started = UNIX_EPOCH.checked_add(Duration::from_secs(since.as_secs()));
        self
    }

    /// Adds a note, such as why a lock was broken. Keeps the first 256 characters.
    ///
    /// ```
    /// use locktopus_contract::InstanceRecord;
    /// let record = InstanceRecord::new("").with_note("import hangs since 3 am");
    /// assert_eq!(record.note(), Some("import hangs since 3 am"));
    /// ```
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        self.note = Some(printable(note, LONGEST_NOTE));
        self
    }

    /// The name of its program.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The machine that it runs on, unless it hides that.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The number of its process on that host, unless it hides that.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    /// The time when it was built, by its own clock.
    #[must_use]
    pub fn started(&self) -> Option<SystemTime> {
        self.started
    }

    /// The note, if there is one.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The record as lines of text, for stores that keep text. Read it back with
    /// [`parse`](Self::parse).
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{VERSION}\nlabel={}\n", self.label);
        if let Some(host) = &self.host {
            let _ = writeln!(text, "host={host}");
        }
        if let Some(process) = self.process {
            let _ = writeln!(text, "process={process}");
        }
        if let Some(started) = self.started {
            let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
            let _ = writeln!(text, "started={}", since.as_secs());
        }
        if let Some(note) = &self.note {
            let _ = writeln!(text, "note={note}");
        }
        text
    }

    /// Reads the text of [`to_text`](Self::to_text). Ignores lines that a later version of the
    /// library adds. `None` if the text is not a record.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok();
        let text = text.filter(|text| text.len() <= LONGEST_TEXT)?;
        let mut lines = text.split('\n');
        if lines.next() != Some(VERSION) {
            return None;
        }
        let (mut record, mut label) = (Self::new(""), None);
        for (field, value) in lines.filter_map(|line| line.split_once('=')) {
            match field {
                "label" => label = Some(printable(value, LONGEST_LABEL)),
                "host" => record = record.on_host(value),
                "process" => record.process = value.parse().ok(),
                "started" => {
                    let seconds = value.parse().ok().map(Duration::from_secs);
                    record.started = seconds.and_then(|time| UNIX_EPOCH.checked_add(time));
                }
                "note" => record = record.with_note(value),
                _ => {}
            }
        }
        record.label = label?;
        Some(record)
    }
}

/// At most `longest` characters, with unprintable ones replaced.
fn printable(text: &str, longest: usize) -> String {
    let shown = |c| if is_printable(c) { c } else { '\u{fffd}' };
    text.chars().take(longest).map(shown).collect()
}

/// A request to a backend to keep or forget the record of an instance.
///
/// ```
/// # use std::time::Duration;
/// use locktopus_contract::{Announcement, InstanceId, InstanceQuery, InstanceRecord};
/// let (instance, deadline) = (InstanceId::from_bytes([7; 6]), tokio::time::Instant::now());
/// let announcement = Announcement {
///     namespace: "shop:".to_owned(),
///     instance,
///     record: Some(InstanceRecord::new("billing")),
///     keep: Duration::from_secs(120),
///     deadline,
/// };
/// let query =
///     InstanceQuery { namespace: "shop:".to_owned(), instances: vec![instance], deadline };
/// assert_eq!(
///     (query.namespace, query.instances[0]),
///     (announcement.namespace, announcement.instance)
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Announcement {
    /// The prefix of the names of its locks. Instances of different namespaces do not see each
    /// other.
    pub namespace: String,
    /// Which instance.
    pub instance: InstanceId,
    /// The record to keep, which replaces the earlier one. `None`: forget it.
    pub record: Option<InstanceRecord>,
    /// How long to keep it, from when the backend executes this.
    pub keep: Duration,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// A request for the records of some instances.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct InstanceQuery {
    /// The prefix of the names of their locks.
    pub namespace: String,
    /// Which instances. The core asks for at most [`MAX_INSTANCES_PER_QUERY`] at a time.
    pub instances: Vec<InstanceId>,
    /// When the caller stops waiting for the answer.
    pub deadline: Instant,
}

/// The most instances whose records the core asks for in one call.
pub const MAX_INSTANCES_PER_QUERY: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let bare = InstanceRecord::new("größe 1");
        let started = UNIX_EPOCH + Duration::from_secs(1_795_375_119);
        let whole = bare.clone().on_host("web-3").as_process(7);
        let whole = whole.started_at(started + Duration::from_millis(9));
        let whole = whole.with_note("hangs = since 3 am");
        assert_eq!(whole.started(), Some(started));
        for record in [bare, whole] {
            let text = record.to_text();
            assert_eq!(InstanceRecord::parse(text.as_bytes()), Some(record.clone()));
            let later = format!("{text}colour=blue\nno field\n");
            assert_eq!(InstanceRecord::parse(later.as_bytes()), Some(record));
        }
    }

    #[test]
    fn what_others_wrote_is_no_record_or_harmless() {
        for text in [
            &b""[..],
            b"label=a\n",
            b"locktopus-instance1",
            b"locktopus-instance1\nhost=a\n",
            b"locktopus-instance2\nlabel=a\n",
            b"locktopus-instance1\nlabel=\xff\n",
        ] {
            assert_eq!(InstanceRecord::parse(text), None);
        }
        let long = format!("{VERSION}\nlabel={}\n", "x".repeat(LONGEST_TEXT));
        assert_eq!(InstanceRecord::parse(long.as_bytes()), None);
        let wild = format!(
            "{VERSION}\nlabel={}\nhost=\u{1b}]0;x\u{7}\u{202e}\r\nprocess=-1\nstarted=99999999999999999999\n",
            "x".repeat(500)
        );
        let record = InstanceRecord::parse(wild.as_bytes()).unwrap();
        assert_eq!(record.label().len(), LONGEST_LABEL);
        assert_eq!(record.host(), Some("\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}"));
        assert_eq!((record.process(), record.started()), (None, None));
    }

    #[test]
    fn a_record_never_outgrows_what_is_read() {
        let widest = |count| "\u{10348}".repeat(count);
        let record = InstanceRecord::new(&widest(LONGEST_LABEL)).on_host(&widest(LONGEST_HOST));
        let record = record.as_process(u32::MAX).started_at(SystemTime::now());
        let record = record.with_note(&widest(LONGEST_NOTE));
        assert!(record.to_text().len() <= LONGEST_TEXT);
        assert_eq!(
            InstanceRecord::parse(record.to_text().as_bytes()),
            Some(record)
        );
    }
}
