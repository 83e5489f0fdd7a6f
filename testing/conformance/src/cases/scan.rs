//! A list of locks shows all that are held, and no others.

use std::collections::HashSet;

use futures_util::future::join_all;
use locktopus_core::BackendErrorKind;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, longest, until};

/// More than backends put on one page.
const HELD: usize = 130;
/// A list longer than this many pages never ends.
const MOST_PAGES: usize = 100_000;

/// All pages together list the held locks, and neither released ones nor those of other names.
pub async fn held_locks_are_found(ctx: Ctx) {
    let a = ctx.first().await;
    if !lists(&a).await {
        return ctx.skip("no lists");
    }
    let lock = |kind: &str, i: usize| (a.on(ctx.target_with(&format!("/{kind}{i}"))), ctx.owner());
    let held: Vec<_> = (0..HELD).map(|i| lock("h", i)).collect();
    let released: Vec<_> = (0..5).map(|i| lock("h-released", i)).collect();
    let other: Vec<_> = (0..5).map(|i| lock("other", i)).collect();
    let taken = held.iter().chain(&released).chain(&other);
    join_all(taken.map(|(lock, owner)| lock.take(owner, longest()))).await;
    join_all(released.iter().map(|(lock, owner)| lock.give_back(owner))).await;
    let expected: HashSet<_> = held.iter().map(|(lock, _)| name(lock)).collect();
    let prefix = format!("{}/h", ctx.name());
    if ctx.is_quorum() {
        // A release is complete once a majority ran it, but the list shows what any node of a
        // majority still knows.
        let what = "what was released on all nodes leaves the list";
        until(Rule::Admin, ctx.settling().await, what, || async {
            names(&a, &prefix).await == expected
        })
        .await;
    }
    let found = names(&a, &prefix).await;
    let missing = expected.difference(&found).count();
    Rule::Admin.check(
        missing == 0,
        format_args!("{missing} of {HELD} held locks are not found"),
    );
    let wrong: Vec<_> = found.difference(&expected).collect();
    Rule::Admin.check(
        wrong.is_empty(),
        format_args!("{wrong:?} are found, which are not held, or not of that prefix"),
    );
    join_all(
        held.iter()
            .chain(&other)
            .map(|(lock, owner)| lock.give_back(owner)),
    )
    .await;
}

/// Special characters of patterns mean themselves in a prefix.
pub async fn a_prefix_is_not_a_pattern(ctx: Ctx) {
    let a = ctx.first().await;
    if !lists(&a).await {
        return ctx.skip("no lists");
    }
    for special in ["*", "?", "[x]", "\\", "^", "[^a]", "[a-z]"] {
        let [meant, other] = [format!("/{special}1"), "/x1".to_owned()]
            .map(|ending| (a.on(ctx.target_with(&ending)), ctx.owner()));
        if a.backend.check(&meant.0.target).is_err() {
            continue;
        }
        for (lock, owner) in [&meant, &other] {
            lock.take(owner, LONG).await;
        }
        let found = names(&a, &format!("{}/{special}", ctx.name())).await;
        Rule::Admin.check(
            found == HashSet::from([name(&meant.0)]),
            format_args!("locks that begin with {special:?}: {found:?}"),
        );
        for (lock, owner) in [&meant, &other] {
            lock.give_back(owner).await;
        }
    }
}

/// Whether the backend has lists.
pub(super) async fn lists(client: &Client) -> bool {
    let page = client.backend.scan("", None, client.deadline()).await;
    let error = page.err().map(|error| error.kind());
    error != Some(BackendErrorKind::Unsupported)
}

fn name(lock: &Client) -> String {
    lock.target.name().as_str().to_owned()
}

/// The names on all pages.
async fn names(client: &Client, prefix: &str) -> HashSet<String> {
    let (mut found, mut cursor) = (HashSet::new(), None);
    for _ in 0..MOST_PAGES {
        let page = client.backend.scan(prefix, cursor, client.deadline()).await;
        let page = Rule::Errors.ok(page, "a page of a list");
        found.extend(page.locks.into_iter().map(|lock| lock.name));
        cursor = page.next;
        if cursor.is_none() {
            return found;
        }
    }
    Rule::Admin.broken(format_args!("a list does not end after {MOST_PAGES} pages"))
}
