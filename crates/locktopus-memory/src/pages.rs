//! Lists held locks, a page at a time.

use locktopus_contract::{FoundLock, LockKind, LockPage, ScanCursor};
use tokio::time::Instant;

use super::table::Table;

/// Locks in one page.
const PAGE_SIZE: usize = 100;

/// The page that begins after `cursor`, by name.
pub(super) fn page(table: &Table, prefix: &str, cursor: Option<ScanCursor>) -> LockPage {
    let now = Instant::now();
    let after = cursor.map_or_else(String::new, |cursor| cursor.0);
    let mut names: Vec<_> = table
        .entries
        .values()
        .filter(|entry| entry.holders.iter().any(|holder| holder.expires > now))
        .map(|entry| (entry.target.name().as_str(), entry.target.kind()))
        .filter(|(name, _)| name.starts_with(prefix) && *name > after.as_str())
        .collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    let next = (names.len() > PAGE_SIZE).then(|| ScanCursor(names[PAGE_SIZE - 1].0.to_owned()));
    names.truncate(PAGE_SIZE);
    let found = |(name, kind): (&str, &LockKind)| FoundLock::new(name, kind.clone());
    LockPage::new(names.into_iter().map(found).collect(), next)
}
