//! Fencing tokens must be unique and grow.

use std::collections::HashSet;

use crate::assemble::{Assembled, Fault, Lock};
use crate::attempt::{Attempt, Held};
use crate::clock::nanos;
use crate::event::{AttemptId, Mode};
use crate::offence::Offence;
use crate::offence::Worst;
use crate::options::Options;
use crate::verdict::Tokens;

pub(super) fn check(all: &Assembled, options: &Options) -> Tokens {
    let mut tokens = Tokens::default();
    let mut duplicates = Worst::new(options.examples);
    let mut falls = Worst::new(options.examples);
    let mut unordered = Worst::new(options.examples);
    for lock in &all.locks {
        let mut grants = tokened(lock);
        tokens.checked += grants.len() as u64;
        let handed_on = nanos(options.handed_on);
        let anyway = |grant: &Tokened<'_>| follows_anyway(grant).saturating_sub(handed_on);
        let is_fault = |first: &Tokened<'_>, other: &Tokened<'_>| {
            options.exclusive || first.2.at < anyway(other)
        };
        let (faults, others) = find_duplicates(lock, &mut grants, is_fault, &mut duplicates);
        tokens.duplicates += faults;
        tokens.unordered += others;
        let by_receipt = |grant: &Tokened<'_>| follows_if_exclusive(grant, &all.faults);
        if options.exclusive {
            tokens.falls += find_falls(lock, &mut grants, by_receipt, &mut falls).len() as u64;
        } else {
            let promised = find_falls(lock, &mut grants, anyway, &mut falls);
            tokens.falls += promised.len() as u64;
            grants.retain(|(_, attempt, _)| !promised.contains(&attempt.id));
            let further = find_falls(lock, &mut grants, by_receipt, &mut unordered);
            tokens.unordered += further.len() as u64;
        }
    }
    tokens.duplicate_examples = duplicates.into_list();
    tokens.fall_examples = falls.into_list();
    tokens.unordered_examples = unordered.into_list();
    tokens
}

/// A grant with its token.
type Tokened<'a> = (u64, &'a Attempt, &'a Held);

/// Exclusive grants with tokens. Those of readers and permits imply no order.
fn tokened(lock: &Lock) -> Vec<Tokened<'_>> {
    lock.grants()
        .filter(|(_, held)| held.grant.mode == Mode::Exclusive)
        .filter_map(|(attempt, held)| Some((held.grant.token?, attempt, held)))
        .collect()
}

/// How many grants repeat an earlier token, split into faults and others. A holder that re-enters
/// has one lease and one token.
fn find_duplicates(
    lock: &Lock,
    grants: &mut [Tokened<'_>],
    is_fault: impl Fn(&Tokened<'_>, &Tokened<'_>) -> bool,
    worst: &mut Worst,
) -> (u64, u64) {
    grants.sort_by_key(|&(token, _, held)| (token, held.at));
    let (mut found, mut others) = (0, 0);
    let mut tenures = HashSet::new();
    for same in grants.chunk_by(|a, b| a.0 == b.0) {
        let (token, first, held) = same[0];
        tenures.clear();
        tenures.insert(held.tenure);
        for grant in &same[1..] {
            let &(_, other, held) = grant;
            if !tenures.insert(held.tenure) {
                continue;
            }
            if is_fault(&same[0], grant) {
                found += 1;
                worst.add(offence(
                    lock,
                    held.at,
                    first,
                    other,
                    format!("both {token}"),
                ));
            } else {
                others += 1;
            }
        }
    }
    (found, others)
}

/// The grants with a token not larger than that of every grant received before the time that
/// `follows` returns.
fn find_falls(
    lock: &Lock,
    grants: &mut [Tokened<'_>],
    follows: impl Fn(&Tokened<'_>) -> u64,
    worst: &mut Worst,
) -> HashSet<AttemptId> {
    let mut received: Vec<_> = grants.to_vec();
    received.sort_by_key(|(_, _, held)| held.at);
    grants.sort_by_cached_key(&follows);
    let mut received = received.into_iter().peekable();
    let mut largest: Option<Tokened<'_>> = None;
    let mut found = HashSet::new();
    for grant in &*grants {
        let &(token, attempt, held) = grant;
        let until = follows(grant);
        while let Some(before) = received.next_if(|(_, _, held)| held.at < until) {
            if largest.is_none_or(|largest| before.0 > largest.0) {
                largest = Some(before);
            }
        }
        if let Some((larger, first, _)) = largest.filter(|largest| largest.0 > token) {
            found.insert(attempt.id);
            let note = format!("{larger}, then {token}");
            worst.add(offence(lock, held.at, first, attempt, note));
        }
    }
    found
}

/// This grant was given after every grant received before this time, no matter who else was granted
/// the lock meanwhile.
///
/// A reply may take long, so the order of replies alone proves nothing. A grant that was received
/// before this one was requested came before it.
fn follows_anyway(&(_, attempt, _): &Tokened<'_>) -> u64 {
    attempt.started
}

/// As [`follows_anyway`], if the lock has at most one holder at a time.
///
/// A grant that was still valid when it was received lasted without a break since it was given, so
/// meanwhile the lock cannot have been granted to anyone else. Any grant received earlier was thus
/// given earlier, unless a fault in between took the lock from its holder, as a failover does.
fn follows_if_exclusive(&(_, attempt, held): &Tokened<'_>, faults: &[Fault]) -> u64 {
    let next = faults.partition_point(|fault| fault.at < attempt.started);
    let undisturbed = faults.get(next).is_none_or(|fault| fault.at > held.at);
    if undisturbed && !held.was_spent() {
        held.at
    } else {
        attempt.started
    }
}

fn offence(lock: &Lock, at_ns: u64, first: &Attempt, second: &Attempt, note: String) -> Offence {
    Offence {
        lock: lock.name.clone(),
        at_ns,
        length_ns: 0,
        first: first.id,
        second: Some(second.id),
        note,
    }
}
