//! A crowd on one lock, with every hold recorded.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use locktopus_core::{FencingToken, Locktopus, WaitStrategy};
use tokio::time::Instant;

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{HEARTBEAT, LONG};

const TASKS: usize = 100;
/// More than there are clients, because waiters of one `Locktopus` may pass the lock to each other.
const GROUPS: usize = 25;
const ROUNDS: usize = 2;
const WRITTEN: &str = "no task panics while it writes";
/// On a distant store every hold takes a round trip, and no two run in parallel.
const FAR_AWAY: (usize, usize) = (30, 10);
/// Waiters at a quorum poll all nodes again and again, and take votes from each other.
const AT_A_QUORUM: (usize, usize) = (12, 6);

/// One hold, from after the grant to before the release, on the one clock of this process.
#[derive(Debug, Clone, Copy)]
struct Hold {
    from: Instant,
    to: Instant,
    token: Option<FencingToken>,
}

/// A hundred tasks (fewer at a quorum or far away), in groups with different wait strategies, each
/// take one lock twice. No two holds overlap, and tokens grow in the order of the holds.
pub async fn a_crowd_is_serialised(ctx: Ctx) {
    let (tasks, count) = match ctx.is_quorum() {
        true => AT_A_QUORUM,
        false if !ctx.far().is_zero() => FAR_AWAY,
        false => (TASKS, GROUPS),
    };
    let mut groups = Vec::new();
    for index in 0..count {
        groups.push(ctx.locks(index).await);
    }
    let record = Mutex::new(Vec::new());
    let strategies = strategies(&ctx);
    let held = (0..tasks).map(|task| {
        let group = task % count;
        let strategy = strategies[group % strategies.len()];
        hold(&ctx, &groups[group], strategy, &record)
    });
    let served = matches!(
        select(pin!(join_all(held)), pin!(nobody_is_served(&record))).await,
        Either::Left(_)
    );
    Rule::Api.check(
        served,
        format_args!("nobody is served in a crowd within {LONG:?}"),
    );
    let mut record = record.into_inner().expect(WRITTEN);
    record.sort_by_key(|hold| hold.from);
    Rule::Api.check(
        record.len() == tasks * ROUNDS,
        format_args!("{} holds instead of {}", record.len(), tasks * ROUNDS),
    );
    for pair in record.windows(2) {
        let (before, after): (Hold, Hold) = (pair[0], pair[1]);
        Rule::Exclusion.check(
            after.from >= before.to,
            format_args!(
                "two holds overlapped by {:?}",
                before.to.saturating_duration_since(after.from)
            ),
        );
        if ctx.flavour().has_tokens() {
            Rule::Tokens.check(
                after.token > before.token,
                format_args!("token {:?} followed {:?}", after.token, before.token),
            );
        }
    }
}

/// The wait strategies of the groups; `None` is the suite's default.
fn strategies(ctx: &Ctx) -> [Option<WaitStrategy>; 3] {
    if !ctx.flavour().announces() {
        return [None; 3];
    }
    let confirmed = WaitStrategy::HandOff {
        heartbeat: HEARTBEAT,
        confirm: true,
    };
    let woken = WaitStrategy::Notify {
        heartbeat: HEARTBEAT,
    };
    [None, Some(confirmed), Some(woken)]
}

/// Returns when no hold was added for a long time. How long the crowd takes depends on the machine.
async fn nobody_is_served(record: &Mutex<Vec<Hold>>) {
    let holds = || record.lock().expect(WRITTEN).len();
    let mut seen = usize::MAX;
    while seen != holds() {
        seen = holds();
        tokio::time::sleep(LONG).await;
    }
}

async fn hold(
    ctx: &Ctx,
    locks: &Locktopus,
    strategy: Option<WaitStrategy>,
    record: &Mutex<Vec<Hold>>,
) {
    for _ in 0..ROUNDS {
        let mut request = ctx.request(locks);
        if let Some(strategy) = strategy {
            request = request.strategy(strategy);
        }
        let guard = Rule::Api.ok(request.acquire().await, "acquiring in a crowd");
        let from = Instant::now();
        tokio::time::sleep(Duration::from_micros(500)).await;
        let (to, token) = (Instant::now(), guard.token());
        let hold = Hold { from, to, token };
        record.lock().expect(WRITTEN).push(hold);
        Rule::Api.ok(guard.release().await, "a release in a crowd");
    }
}
