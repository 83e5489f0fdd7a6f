//! Random histories: the fast checks agree with slow ones that follow the definitions.

use locktopus_history::{
    Access, Mode, Span, WeightedSpan, WriteOutcome, find_excess, find_overlaps,
};

use super::lives::{Dice, Life, check, fault, life, rules};

const HISTORIES: u64 = 2_000;

fn spans(dice: &mut Dice) -> Vec<Span> {
    let (count, range) = (dice.below(40), dice.between(5, 200));
    let holders = dice.between(1, 12);
    let readers = dice.below(101);
    (0..count)
        .map(|_| {
            let start = dice.below(range);
            Span {
                start,
                end: start + dice.below(range / 4 + 1),
                holder: u32::try_from(dice.below(holders)).unwrap(),
                access: if dice.percent(readers) {
                    Access::Shared
                } else {
                    Access::Exclusive
                },
            }
        })
        .collect()
}

fn conflict(a: &Span, b: &Span) -> bool {
    a.holder != b.holder
        && (a.access, b.access) != (Access::Shared, Access::Shared)
        && a.start < b.end
        && b.start < a.end
}

#[test]
fn overlaps() {
    let mut dice = Dice(1);
    let (mut with, mut without) = (0, 0);
    for _ in 0..HISTORIES {
        let spans = spans(&mut dice);
        let mut pairs = Vec::new();
        for (at, a) in spans.iter().enumerate() {
            pairs.extend(
                spans[at + 1..]
                    .iter()
                    .filter(|b| conflict(a, b))
                    .map(|b| (*a, *b)),
            );
        }
        let longest = pairs
            .iter()
            .map(|(a, b)| a.end.min(b.end) - a.start.max(b.start))
            .max();
        let mut covered = [false; 500];
        for (a, b) in &pairs {
            let during = a.start.max(b.start)..a.end.min(b.end);
            during.for_each(|at| covered[usize::try_from(at).unwrap()] = true);
        }
        let total = covered.iter().filter(|&&covered| covered).count() as u64;

        let found = find_overlaps(&spans);
        assert_eq!(found.pairs, pairs.len() as u64, "{spans:?}");
        assert_eq!(found.longest_ns, longest.unwrap_or(0), "{spans:?}");
        assert_eq!(found.total_ns, total, "{spans:?}");
        for one in &found.conflicts {
            let (a, b) = (&spans[one.earlier], &spans[one.later]);
            assert!(conflict(a, b), "{a:?} {b:?}");
            assert_eq!(
                (one.start, one.end),
                (a.start.max(b.start), a.end.min(b.end))
            );
        }
        assert_eq!(found.conflicts.is_empty(), pairs.is_empty());
        *(if pairs.is_empty() {
            &mut without
        } else {
            &mut with
        }) += 1;
    }
    assert!(
        with > 500 && without > 100,
        "{with} with overlaps, {without} without"
    );
}

#[test]
fn excess() {
    let mut dice = Dice(2);
    let (mut with, mut without) = (0, 0);
    for _ in 0..HISTORIES {
        let limit = dice.below(8);
        let spans: Vec<WeightedSpan> = spans(&mut dice)
            .iter()
            .map(|span| WeightedSpan {
                start: span.start,
                end: span.end,
                weight: dice.between(1, 3),
            })
            .collect();
        // Spans without a length take nothing, for no time; they count if they find no room.
        let sum_at = |at: u64| -> u64 {
            let there = spans
                .iter()
                .filter(|span| span.start <= at && at < span.end);
            there.map(|span| span.weight).sum()
        };
        let over: Vec<bool> = (0..500).map(|at| sum_at(at) > limit).collect();
        let total = over.iter().filter(|&&over| over).count() as u64;
        let longest = over
            .split(|&over| !over)
            .map(<[bool]>::len)
            .max()
            .unwrap_or(0) as u64;

        let found = find_excess(&spans, limit);
        assert_eq!(
            (found.total_ns, found.longest_ns),
            (total, longest),
            "{limit} {spans:?}"
        );
        assert_eq!(found.count, found.over.len() as u64);
        if spans.iter().all(|span| span.start < span.end) {
            // Spans that start when earlier ones and they themselves take more than the limit.
            let mut order: Vec<_> = (0..spans.len()).collect();
            order.sort_by_key(|&at| (spans[at].start, spans[at].end));
            let mut count = 0;
            for (rank, &at) in order.iter().enumerate() {
                let begun = spans[at].start;
                let there = order[..=rank]
                    .iter()
                    .filter(|&&other| spans[other].end > begun);
                count += u64::from(there.map(|&other| spans[other].weight).sum::<u64>() > limit);
            }
            assert_eq!(found.count, count, "{limit} {spans:?}");
        }
        *(if total > 0 { &mut with } else { &mut without }) += 1;
    }
    assert!(
        with > 500 && without > 100,
        "{with} with excess, {without} without"
    );
}

/// One grant, as the slow checks see it.
#[derive(Clone, Debug)]
struct Plain {
    asked: u64,
    queued: Option<u64>,
    granted: u64,
    /// Its validity had ended when it was received.
    spent: bool,
    token: u64,
    writes: Vec<(u64, u64, WriteOutcome, Option<u64>)>,
}

fn grants(dice: &mut Dice) -> Vec<Plain> {
    let (count, range, tokens) = (dice.below(12), dice.between(10, 300), dice.between(1, 15));
    let counted = dice.percent(50);
    let mut order = 0;
    (0..count)
        .map(|_| {
            let asked = dice.below(range);
            let granted = asked + 2 + dice.below(range / 3);
            let mut at = granted;
            let writes = (0..dice.below(4))
                .map(|_| {
                    let issued = at + dice.below(range / 3);
                    at = issued + dice.below(range / 8 + 1);
                    order += 1;
                    // Mostly in the order of time, sometimes not.
                    let number = at * 1_000 + order + dice.below(20_000);
                    let outcome = [
                        WriteOutcome::Accepted,
                        WriteOutcome::Accepted,
                        WriteOutcome::Rejected,
                        WriteOutcome::Unknown,
                    ][usize::try_from(dice.below(4)).unwrap()];
                    (issued, at, outcome, counted.then_some(number))
                })
                .collect();
            Plain {
                asked,
                queued: dice
                    .percent(70)
                    .then(|| asked + dice.below(granted - asked)),
                granted,
                spent: false,
                token: dice.between(1, tokens),
                writes,
            }
        })
        .collect()
}

fn lives(grants: &[Plain], closed: bool) -> Vec<Life> {
    let mut lives = vec![rules(None, true)];
    for (worker, grant) in (1..).zip(grants) {
        let mut one = life(worker).asks(grant.asked);
        if let Some(at) = grant.queued {
            one = one.queued(at);
        }
        let valid_until = grant.granted + u64::from(!grant.spent);
        one = one.gets(grant.granted, valid_until, grant.token);
        for &(issued, at, outcome, order) in &grant.writes {
            one = one.writes_nth(issued, at, grant.token, outcome, order);
        }
        lives.push(if closed { one.closes(10_000) } else { one });
    }
    lives
}

/// Certainly granted after the other.
fn after(a: &Plain, b: &Plain) -> bool {
    a.asked > b.granted
}

#[test]
fn tokens_and_order() {
    let mut dice = Dice(3);
    let (mut all_falls, mut all_duplicates, mut all_overtakings) = (0, 0, 0);
    for _ in 0..HISTORIES {
        let mut grants = grants(&mut dice);
        for grant in &mut grants {
            grant.spent = dice.percent(20);
        }
        let faults: Vec<u64> = (0..dice.below(4)).map(|_| dice.below(400)).collect();
        let earlier = |a: &Plain, b: &Plain| {
            let disturbed = faults.iter().any(|at| (b.asked..=b.granted).contains(at));
            after(b, a) || (a.granted < b.granted && !b.spent && !disturbed)
        };
        let falls = grants
            .iter()
            .filter(|b| grants.iter().any(|a| earlier(a, b) && a.token > b.token))
            .count() as u64;
        let mut tokens: Vec<_> = grants.iter().map(|grant| grant.token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let duplicates = (grants.len() - tokens.len()) as u64;
        let overtakes = |b: &Plain, a: &Plain| {
            let queued = a.queued.is_some_and(|queued| queued < b.asked);
            queued && !a.spent && a.granted > b.granted && a.token > b.token
        };
        let overtakings = grants
            .iter()
            .filter(|b| grants.iter().any(|a| overtakes(b, a)))
            .count() as u64;

        let mut lives = lives(&grants, true);
        lives.extend(faults.iter().map(|at| fault(*at, "kill-primary")));
        let verdict = check(lives);
        assert_eq!(verdict.tokens.falls, falls, "{grants:?}");
        assert_eq!(verdict.tokens.duplicates, duplicates, "{grants:?}");
        assert_eq!(verdict.order.overtakings, overtakings, "{grants:?}");
        all_falls += falls;
        all_duplicates += duplicates;
        all_overtakings += overtakings;
    }
    assert!(all_falls > 1_000 && all_duplicates > 1_000 && all_overtakings > 100);
}

#[test]
fn writes() {
    let mut dice = Dice(4);
    let (mut all_missed, mut all_caught, mut all_good) = (0, 0, 0);
    for _ in 0..HISTORIES {
        let grants = grants(&mut dice);
        let closed = dice.percent(50);
        let writes: Vec<_> = grants
            .iter()
            .enumerate()
            .flat_map(|(by, grant)| grant.writes.iter().map(move |write| (by, grant, write)))
            .collect();
        let (mut issued, mut missed, mut caught, mut good) = (0, 0, 0, 0);
        for &(by, own, &(begun, answered, outcome, order)) in &writes {
            let earlier = || {
                writes.iter().filter(move |(_, _, write)| {
                    let counted = write.3.zip(order).is_some_and(|(a, b)| a < b);
                    write.2 == WriteOutcome::Accepted && (write.1 < begun || counted)
                })
            };
            let stale = earlier().any(|(_, other, _)| {
                after(other, own) || (other.token > own.token && !after(own, other))
            });
            let smaller = earlier().any(|(_, other, _)| other.token > own.token);
            let reason = |other: usize| {
                let it = &grants[other];
                let larger = it.token > own.token || (it.token == own.token && other != by);
                larger && !after(own, it)
            };
            let justified = writes.iter().any(|&(other, _, write)| {
                write.2 != WriteOutcome::Rejected && write.0 < answered && reason(other)
            }) || (!closed
                && (0..grants.len())
                    .any(|other| grants[other].granted < answered && reason(other)));
            let is_missed = outcome == WriteOutcome::Accepted && (stale || smaller);
            missed += u64::from(is_missed);
            issued += u64::from(stale || is_missed);
            caught += u64::from(outcome == WriteOutcome::Rejected && stale);
            good += u64::from(outcome == WriteOutcome::Rejected && !stale && !justified);
        }
        let found = check(lives(&grants, closed)).fenced;
        let numbers = (found.stale_issued, found.stale_missed, found.stale_caught);
        assert_eq!(numbers, (issued, missed, caught), "{grants:?}");
        assert_eq!(found.good_rejected, good, "{closed} {grants:?}");
        all_missed += missed;
        all_caught += caught;
        all_good += good;
    }
    assert!(all_missed > 1_000 && all_caught > 500 && all_good > 500);
}

/// Arbitrary records: no panic, and every number within bounds.
#[test]
fn nonsense() {
    let mut dice = Dice(5);
    let mut malformed = 0;
    for _ in 0..HISTORIES {
        let count = dice.below(60);
        let records = (0..count).map(|_| {
            let mode = [Mode::Exclusive, Mode::Shared, Mode::Permits(2)];
            let mode = mode[usize::try_from(dice.below(3)).unwrap()];
            let (at, other) = (dice.below(100), dice.below(120));
            let any = life(u32::try_from(dice.below(3)).unwrap())
                .attempt(dice.below(3))
                .mode(mode);
            match dice.below(14) {
                0..=2 => any.asks(at),
                3 => any.asks(at).holder(1).lock("b"),
                4 => any.queued(at),
                5 => any.gets(at, other, at),
                6 => any.gets(at, u64::MAX, None),
                7 => any.fails(at, Some(other)),
                8 => any.enters(at),
                9 => any.leaves(at),
                10 => any.writes(other, at, other, WriteOutcome::Accepted),
                11 => any.extends(at, other),
                12 => any.loses(at, other),
                _ => any.begins_release(at),
            }
        });
        let verdict = check(records);
        assert_eq!(verdict.facts.records as u64, count);
        assert!(verdict.facts.granted + verdict.facts.failed <= verdict.facts.attempts);
        assert!(verdict.to_string().contains("records of"));
        malformed += verdict.malformed.len();
    }
    assert!(malformed > 1_000);
}
