//! `ls`: lists the locks that are held.

mod pattern;

use std::collections::BTreeMap;

use clap::Args;
use futures_util::future::join_all;
use locktopus::{ListedLock, LockKind, LockState, Locktopus};
use serde::Serialize;

use super::Context;
use crate::failure::Failure;
use crate::locks::{Holder, LockView, ask, close, connect};
use crate::output::{Format, Table};

pub(crate) use pattern::Pattern;

/// The locks that are not listed, and how to inspect them.
const UNSEEN: &str = "not listed: mutexes that other libraries keep as plain strings, and semaphores and latches of Redisson \
                      (RSemaphore, RCountDownLatch), which are bare numbers: they look like any other data; inspect one \
                      with locktopus status NAME, and with --profile LIBRARY for a mutex";

/// How many of the names that are left out are shown, and how many characters of each.
const NAMED: usize = 5;
const LONGEST: usize = 60;

/// How many locks to inspect at once: enough to hide the network latency, few enough not to delay
/// others.
const AT_ONCE: usize = 32;

/// List the locks that are held
///
/// Not listed: mutexes that other libraries keep as plain strings, and Redisson's RSemaphore and
/// RCountDownLatch, which are bare numbers. They look like any other data. Inspect one with
/// locktopus status NAME, and with --profile LIBRARY for a mutex.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// List only names that match: * is any text, ? one character. The servers search by the part
    /// before the first of these
    #[arg(default_value = "*")]
    pattern: String,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    found: Listing,
    unseen: &'static str,
}

/// The held locks of a pattern.
#[derive(Serialize)]
pub(crate) struct Listing {
    pub(crate) locks: Vec<LockView>,
    /// The names of other libraries' locks that no command accepts.
    pub(crate) left_out: Vec<String>,
}

impl Listing {
    /// Counts and names the locks that are left out.
    fn left_out(&self) -> Option<String> {
        let (all, named) = (self.left_out.len(), self.left_out.iter().take(NAMED));
        let named: Vec<_> = named
            .map(|name| match name.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{:?}...", &name[..end]),
                None => format!("{name:?}"),
            })
            .collect();
        let names = if all == 1 { "name" } else { "names" };
        let more = if all > NAMED { ", ..." } else { "" };
        let named = named.join(", ");
        (all > 0)
            .then(|| format!("left out: {all} {names} that Locktopus cannot use: {named}{more}"))
    }
}

pub(crate) async fn run(args: &ListArgs, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let found = all(&locks, &Pattern::new(&args.pattern)).await;
    close(locks).await;
    let listed = Listed {
        found: found?,
        unseen: UNSEEN,
    };
    // With an empty list, the lock may be one of those. JSON always tells.
    if let (Format::Text, Some(left_out)) = (context.out.format, listed.found.left_out()) {
        context.out.say(&left_out);
    }
    match context.out.format {
        Format::Text if listed.found.locks.is_empty() => context.out.say(UNSEEN),
        Format::Text => tracing::info!("{UNSEEN}"),
        Format::Json => {}
    }
    context.out.answer(&listed, text)
}

/// All held locks whose names match, sorted by name.
pub(crate) async fn all(locks: &Locktopus, pattern: &Pattern) -> Result<Listing, Failure> {
    let mut found: BTreeMap<String, (LockKind, LockState)> = BTreeMap::new();
    let mut list = locks.list(pattern.prefix())?;
    while let Some(page) = list.next_page().await? {
        let fitting: Vec<_> = page
            .iter()
            .map(|lock| (lock, named(lock)))
            .filter(|(_, (name, _))| pattern.shows(name) && !found.contains_key(name))
            .collect();
        for some in fitting.chunks(AT_ONCE) {
            let states = some.iter().map(|(lock, _)| lock.request().inspect());
            for ((_, (name, kind)), state) in some.iter().zip(join_all(states).await) {
                match state {
                    Ok(state) if !state.holders.is_empty() => {
                        found.insert(name.clone(), (kind.clone(), state));
                    }
                    // Released, or taken as another kind, after it was listed.
                    Ok(_) => {}
                    Err(error) if error.other_kind().is_some() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    // Ask for all labels at once.
    let owners = found.values().flat_map(|(_, state)| state.owners());
    let who = ask(locks, owners).await;
    let shown = found
        .iter()
        .map(|(name, (kind, state))| LockView::new(name, kind, state, &who));
    let stored = |name: &&str| pattern.shows(name.strip_prefix(locks.namespace()).unwrap_or(name));
    Ok(Listing {
        locks: shown.collect(),
        left_out: list.left_out().filter(stored).map(str::to_owned).collect(),
    })
}

/// The name as other commands take it, and the kind. A name that no command accepts is shown as
/// stored.
fn named(lock: &ListedLock) -> (String, LockKind) {
    let given = lock
        .given_name()
        .and_then(|name| String::from_utf8(name).ok());
    let name = given.unwrap_or_else(|| lock.name().as_str().to_owned());
    (name, lock.kind().clone())
}

fn text(listed: &Listed) -> String {
    let listed = &listed.found;
    if listed.locks.is_empty() {
        return "no lock is held".to_owned();
    }
    let mut table = Table::new([
        "NAME",
        "KIND",
        "HOLDER",
        "LABEL",
        "HELD",
        "LEASE",
        "WAITING",
        "TOKENS TO",
    ]);
    for lock in &listed.locks {
        let first = lock.holders.first();
        let holder = match (first, lock.holders.len()) {
            (Some(holder), 1) => holder.owner.clone(),
            (Some(holder), holders) => format!("{} and {}", holder.owner, holders - 1),
            (None, _) => String::new(),
        };
        table.add([
            lock.name.clone(),
            lock.kind.to_owned(),
            holder,
            first
                .and_then(|holder| holder.person.short())
                .unwrap_or_default(),
            first.and_then(Holder::held).unwrap_or_default(),
            first
                .map(|holder| holder.remaining.clone())
                .unwrap_or_default(),
            lock.waiters.len().to_string(),
            lock.reserved_token
                .map(|token| token.to_string())
                .unwrap_or_default(),
        ]);
    }
    table.render()
}
