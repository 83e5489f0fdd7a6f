//! Parses the records of waiters.

use super::who::{Mode, Owner, Waiter};
use super::{text, words};

/// Parses the record of a fair lock's waiter: `<alive until, ms> <lease, ms> <tokens> <permits>
/// <mode> <inbox channel>`.
pub(super) fn waiter(owner: Owner, record: &str) -> Option<Waiter> {
    let (alive_until, mut waiter, inbox) = asked(record)?;
    waiter.owner = owner;
    waiter.alive_until = alive_until * 1_000;
    waiter.inbox = inbox.as_bytes().to_vec();
    Some(waiter)
}

/// Parses a member of another queue, `<place, ms> <lease, ms> <tokens> <permits> <mode> <length of
/// the owner> <owner> <inbox channel>`. Returns its place, its owner as stored, and the waiter.
pub(super) fn in_line(member: &[u8]) -> Option<(i64, &[u8], Waiter)> {
    let mut parts = member.splitn(7, |byte| *byte == b' ');
    let first: Vec<_> = parts.by_ref().take(6).map(words).collect();
    // Ids of permits are not text.
    let rest = parts.next()?;
    let (owner, inbox) = rest.split_at_checked(first.last()?.parse().ok()?)?;
    let header = first.join(" ");
    let (place, mut waiter, _) = asked(&header)?;
    waiter.owner = text(owner);
    waiter.inbox = inbox.strip_prefix(b" ")?.to_vec();
    Some((place, owner, waiter))
}

/// Parses a first number, a waiter's request, and the rest.
fn asked(record: &str) -> Option<(i64, Waiter, &str)> {
    let mut parts = record.splitn(6, ' ');
    let mut next = || parts.next()?.parse::<i64>().ok();
    let (first, lease_ms, tokens, permits) = (next()?, next()?, next()?, next()?);
    let mode = match parts.next()? {
        "x" | "m" | "f" => Mode::Exclusive,
        "r" => Mode::Read,
        "w" => Mode::Write,
        "s" | "p" => Mode::Permits,
        _ => return None,
    };
    let waiter = Waiter {
        owner: Owner::from(""),
        alive_until: 0,
        lease_ms,
        tokens,
        permits,
        mode,
        inbox: Vec::new(),
        aside: false,
    };
    Some((first, waiter, parts.next()?))
}
