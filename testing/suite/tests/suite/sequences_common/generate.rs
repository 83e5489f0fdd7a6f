//! Generates the sequences to try.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use locktopus::CounterAction;
use locktopus_conformance::Flavour;
use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::Sequential;

use super::calls::{Call, Half, Slot};
use super::reference::Reference;

/// More holders, waiters and latecomers than any failure so far needed at once.
const SLOTS: usize = 4;
const LONGEST: usize = 40;

/// The state before, the calls, and a counter of the calls that were made.
type Made = (Reference, Vec<Call>, Option<Arc<AtomicUsize>>);

/// Leases and places in ms, chosen so that many end at the same moment, or so that none ends before
/// the sequence does.
fn leases(timed: bool) -> Vec<u64> {
    if timed {
        vec![1_000, 250, 100, 60]
    } else {
        vec![3_600_000, 2_400_000, 1_200_000]
    }
}

pub fn sequences(flavour: Flavour, timed: bool) -> impl Strategy<Value = Made> {
    let first = move || {
        let counted = flavour.is_counted();
        let permits = if counted { 1..=3_u32 } else { 1..=1 };
        let tokens = if flavour.has_tokens() {
            1..=3_u32
        } else {
            1..=1
        };
        let slot = (
            select(leases(timed)),
            select(leases(timed)),
            permits,
            tokens,
        );
        let slot = slot.prop_map(|(lease, keep, permits, tokens)| Slot {
            lease,
            keep,
            permits,
            tokens,
        });
        let slots = prop::collection::vec(slot, SLOTS);
        slots
            .prop_map(move |slots| Reference::new(flavour, slots))
            .boxed()
    };
    Sequential::new(
        (1..=LONGEST).into(),
        first,
        |reference: &Reference, call: &Call| reference.permits(call),
        move |_: &Reference| calls(flavour, timed),
        |mut reference: Reference, call: &Call| {
            let _ = reference.call(call);
            reference
        },
    )
}

fn calls(flavour: Flavour, timed: bool) -> BoxedStrategy<Call> {
    let count = || counting(flavour, timed).prop_map(Call::Count);
    if flavour == Flavour::Latch {
        return prop_oneof![4 => count(), 1 => Just(Call::CountAgain)].boxed();
    }
    let who = 0..SLOTS;
    let half = if flavour == Flavour::ReadWrite {
        vec![Half::Whole, Half::Read]
    } else {
        vec![Half::Whole]
    };
    let (half, queues) = (select(half), Flavour::IN_LINE.contains(&flavour));
    let attempt = (who.clone(), half.clone(), prop::bool::weighted(0.7)).prop_map(
        move |(who, half, waits)| Call::Attempt {
            who,
            half,
            waits: waits && queues,
        },
    );
    let extend = (who.clone(), half.clone(), select(leases(timed)))
        .prop_map(|(who, half, lease)| Call::Extend { who, half, lease });
    let release =
        (who, half, any::<bool>()).prop_map(|(who, half, hint)| Call::Release { who, half, hint });
    let mut kinds = vec![
        (10, attempt.boxed()),
        (6, release.boxed()),
        (1, Just(Call::Evict).boxed()),
        (2, Just(Call::Look).boxed()),
    ];
    if flavour != Flavour::RateLimiter {
        kinds.push((3, extend.boxed()));
    }
    if flavour.is_counted() {
        kinds.push((4, count().boxed()));
        kinds.push((1, Just(Call::CountAgain).boxed()));
    }
    if timed {
        kinds.push((
            4,
            select(vec![1_u64, 59, 60, 100, 250])
                .prop_map(Call::Pass)
                .boxed(),
        ));
    }
    proptest::strategy::Union::new_weighted(kinds).boxed()
}

fn counting(flavour: Flavour, timed: bool) -> BoxedStrategy<CounterAction> {
    if flavour == Flavour::Latch {
        return prop_oneof![
            3 => (1..4_u64).prop_map(CounterAction::Initialise),
            4 => Just(CounterAction::CountDown),
            2 => Just(CounterAction::Read),
            1 => Just(CounterAction::Delete),
        ]
        .boxed();
    }
    if flavour == Flavour::RateLimiter {
        let rate = (0..6_u64, select(leases(timed)), any::<bool>());
        let rate = rate.prop_map(|(permits, per, keep)| CounterAction::Rate {
            permits,
            per: Duration::from_millis(per),
            keep,
        });
        return prop_oneof![
            8 => rate,
            1 => Just(CounterAction::Read),
            1 => Just(CounterAction::Delete),
        ]
        .boxed();
    }
    prop_oneof![
        4 => (0..6_u64).prop_map(CounterAction::Initialise),
        2 => (0..6_u64).prop_map(CounterAction::Resize),
        3 => (-3..4_i64).prop_map(CounterAction::Add),
        1 => Just(CounterAction::Drain),
        1 => Just(CounterAction::Read),
        1 => Just(CounterAction::Delete),
    ]
    .boxed()
}
