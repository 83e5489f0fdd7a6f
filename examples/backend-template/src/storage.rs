//! The storage: the one file to replace. Rows by key, each changed in one transaction.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locktopus::{BackendError, OwnerId};
use tokio::time::Instant;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) owner: OwnerId,
    pub(crate) token: u64,
    /// The rest of the lease by the store's own clock, which is the only one that counts.
    pub(crate) left: Duration,
}

/// A table in this process.
#[derive(Debug, Default)]
pub(crate) struct Storage(Mutex<Table>);

/// The rows with the ends of their leases, and the last token that was granted.
#[derive(Debug, Default)]
struct Table {
    rows: HashMap<String, (Row, Instant)>,
    last_token: u64,
}

impl Storage {
    /// One transaction: reads the row of `key`, unless its lease has ended, and the last token;
    /// lets `decide` change both; writes them. A store without transactions compares and swaps, and
    /// calls `decide` again if another client was faster.
    #[expect(clippy::unused_async, reason = "other stores are waited for")]
    pub(crate) async fn change<T>(
        &self,
        key: &str,
        mut decide: impl FnMut(&mut Option<Row>, &mut u64) -> T,
    ) -> Result<T, BackendError> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Table { rows, last_token } = &mut *table;
        let now = Instant::now();
        let row = rows.remove(key).filter(|(_, until)| *until > now);
        let mut row = row.map(|(row, until)| Row {
            left: until - now,
            ..row
        });
        let answer = decide(&mut row, last_token);
        if let Some(row) = row {
            let until = now + row.left;
            rows.insert(key.to_owned(), (row, until));
        }
        Ok(answer)
    }

    /// Deletes a row, and keeps the last token: locks that come back must not begin again with 1.
    pub(crate) fn wipe(&self, key: &str) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.rows.remove(key);
    }

    /// The rows whose keys contain `part`, as text. It leaves `left` out, which changes with time.
    pub(crate) fn picture(&self, part: &str) -> String {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = table.rows.iter().filter(|(key, _)| key.contains(part));
        let mut rows: Vec<_> = rows
            .map(|(key, (row, until))| {
                let Row {
                    kind, owner, token, ..
                } = row;
                format!("{key} {kind} {owner:?} {token} {until:?}")
            })
            .collect();
        rows.sort_unstable();
        rows.join("\n")
    }
}
