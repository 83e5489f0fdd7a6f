//! Every interleaving of concurrent events of a lease, with loom: its holder drops or releases it,
//! the watchdog renews it or finds it lost, a task asks for the signal of its loss, and everything
//! is shut down.
//!
//! This compiles the shipped text of the core (`build.rs`) against loom's atomics and mutexes. The
//! backend answers at once, and time stands still, because schedules are about order and not about
//! time.
#![allow(
    dead_code,
    private_interfaces,
    unreachable_pub,
    clippy::arc_with_non_send_sync,
    clippy::default_constructed_unit_structs,
    clippy::future_not_send,
    clippy::unused_async,
    clippy::unwrap_used,
    reason = "not all of the sources under test play a part, and loom's threads take turns on one of the system's"
)]

mod contract;
mod engine;
mod handles;
mod sync;
mod time;

use std::time::Duration;

use locktopus_core::{
    ExtendOutcome, FencingToken, LockKind, LockName, LockTarget, LostCause, OwnerId,
};
use loom::future::block_on;
use loom::thread::{JoinHandle, spawn};

use contract::clock;
use engine::holding::hold::Hold;
use engine::holding::lease::BackendLease;
use engine::holding::services::{Services, at};
use engine::holding::turn::Turn;
use engine::observe::HoldObservation;
use handles::locktopus::Locktopus;
use sync::Arc;

const LEASE: Duration = Duration::from_secs(3);
/// A renewal is due, and the lease has not ended.
const DUE: Duration = Duration::from_millis(1_500);
const OVER: Duration = Duration::from_secs(4);

/// More than three preemptions take minutes, and no break so far needed more.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        time::set(Duration::ZERO);
        check();
    });
}

fn granted_until(valid_until: clock::BootInstant) -> BackendLease {
    let target = LockTarget::new(LockName::new("a").unwrap(), LockKind::Reentrant);
    let (owner, token) = (OwnerId::from_bytes(*b"me"), FencingToken::new(7));
    let mut lease = BackendLease::granted(target, owner, token, LEASE, valid_until);
    lease.renewed = true;
    lease
}

fn granted() -> BackendLease {
    granted_until(at(LEASE))
}

/// Runs something on another thread.
fn at_once<T: 'static, R: 'static>(
    with: &Arc<T>,
    work: impl FnOnce(&Arc<T>) -> R + 'static,
) -> JoinHandle<R> {
    let with = Arc::clone(with);
    spawn(move || work(&with))
}

/// A lease that is not watched.
fn lease() -> Arc<BackendLease> {
    Arc::new(granted())
}

fn turn_of(lease: &Arc<BackendLease>) -> Arc<Turn> {
    Turn::begin(lease, lease.token, clock::now())
}

fn hold(services: &Arc<Services>, lease: BackendLease) -> (Hold, Arc<BackendLease>) {
    let lease = lease.start(services, clock::now()).expect("not shut down");
    (lease.begin_turn(services, None, clock::now()), lease)
}

fn held(services: &Arc<Services>) -> (Hold, Arc<BackendLease>) {
    hold(services, granted())
}

fn shut_down(services: &Arc<Services>) -> usize {
    let services = Arc::clone(services);
    block_on(Locktopus { services }.shutdown(LEASE)).abandoned
}

/// Renews what is due now, as the watchdog's task does.
fn renew(services: &Arc<Services>) -> usize {
    services.watchdog.check_once(services);
    services.tasks.run()
}

#[test]
fn whoever_asks_for_the_signal_hears_of_the_end() {
    model(|| {
        let lease = lease();
        let turn = turn_of(&lease);
        let ends = spawn(move || lease.end(LostCause::Missing));
        let signal = turn.signal().clone();
        ends.join().unwrap();
        assert!(signal.is_cancelled(), "it was lost, and nobody said so");
    });
}

/// A member takes its turn, and another task lists the held locks, while the lease is lost.
#[test]
fn a_turn_that_begins_while_its_lease_is_lost_hears_of_it() {
    model(|| {
        let lease = lease();
        let ends = at_once(&lease, |lease| lease.end(LostCause::Missing));
        let listed = lease.current_turn(clock::now());
        let turn = turn_of(&lease);
        ends.join().unwrap();
        assert_eq!(turn.lost(), Some(&LostCause::Missing));
        assert!(listed.lost().is_some(), "nobody holds it any more");
    });
}

/// Listing the held locks never ends a turn that starts at that moment.
#[test]
fn a_turn_is_listed_and_goes_on() {
    model(|| {
        let lease = lease();
        let begins = at_once(&lease, turn_of);
        let listed = lease.current_turn(clock::now());
        let turn = begins.join().unwrap();
        assert_eq!(turn.lost(), None);
        assert!(Arc::ptr_eq(&listed, &turn) || listed.lost().is_some());
        lease.end(LostCause::Missing);
        assert_eq!(turn.lost(), Some(&LostCause::Missing));
    });
}

#[test]
fn a_lease_ends_once_and_for_the_first_reason() {
    model(|| {
        let lease = lease();
        let turn = turn_of(&lease);
        turn.observed(HoldObservation);
        let ends = at_once(&lease, |lease| {
            lease.end(LostCause::Missing);
            lease.lost().cloned().expect("it was ended")
        });
        lease.end(LostCause::TakenOver);
        let first = lease.lost().cloned().expect("it was ended");
        assert_eq!(turn.lost(), Some(&first), "told before the end returns");
        assert_eq!(ends.join().unwrap(), first);
        assert_eq!(lease.lost(), Some(&first));
    });
}

/// Passing a lease on lifts the maximum hold time of the previous holder. If the watchdog found
/// that limit reached just before, the next holder must not get the lease.
#[test]
fn a_limit_is_lifted_or_the_lease_is_over() {
    model(|| {
        time::set(DUE);
        let lease = lease();
        lease.limit_hold(Some(at(DUE)));
        let judges = at_once(&lease, |lease| lease.judge(clock::now(), None).is_some());
        let lifted = lease.limit_hold(None);
        let over = judges.join().unwrap();
        assert!(lifted != over, "lifted {lifted}, over {over}");
        assert_eq!(lease.lost().is_some(), over);
    });
}

#[test]
fn the_last_hold_is_the_last_one() {
    model(|| {
        let services = Services::new();
        let (held, _) = held(&services);
        let turn = Arc::clone(held.turn());
        let joins = at_once(&services, move |services| {
            if let Some(joined) = Hold::join(services, &turn) {
                assert_eq!(services.released.in_time.get(), 0, "given back under it");
                drop(joined);
            }
        });
        drop(held);
        joins.join().unwrap();
        assert_eq!(services.released.in_time.get(), 1);
        assert_eq!(services.watchdog.len(), 0);
    });
}

#[test]
fn a_ticket_is_the_only_hold_or_there_is_none() {
    model(|| {
        let services = Services::new();
        let (held, _) = held(&services);
        let turn = Arc::clone(held.turn());
        let joins = at_once(&services, move |services| Hold::join(services, &turn));
        let kept = held.transfer().err();
        let joined = joins.join().unwrap();
        let transferred = kept.is_none();
        assert!(transferred != joined.is_some(), "held here and by a ticket");
        drop((kept, joined));
        assert_eq!(services.released.in_time.get(), u32::from(!transferred));
        assert_eq!(services.watchdog.len(), 0);
    });
}

#[test]
fn a_ticket_is_of_a_lease_that_no_shutdown_gives_back() {
    model(|| {
        let services = Services::new();
        let (held, lease) = held(&services);
        let closes = at_once(&services, shut_down);
        let transferred = held.transfer().is_ok();
        closes.join().unwrap();
        assert_eq!(services.released.in_time.get(), u32::from(!transferred));
        assert_eq!(lease.lost() == Some(&LostCause::Transferred), transferred);
        assert_eq!(services.watchdog.len(), 0);
    });
}

/// The answer to a renewal says that the lock is gone, while its holder drops it and another lock
/// takes its place in the watchdog.
#[test]
fn an_answer_about_one_lease_ends_no_other() {
    model(|| {
        let services = Services::new();
        services.renewed.set(ExtendOutcome::Missing);
        let (held, lease) = held(&services);
        time::set(DUE);
        let holder = at_once(&services, |services| {
            drop(held);
            hold(services, granted_until(at(DUE + LEASE)))
        });
        let asked = renew(&services);
        let (held, another) = holder.join().unwrap();
        assert!(asked <= 1 && lease.lost().is_some());
        assert_eq!(another.lost(), None, "the answer was about the one before");
        assert_eq!(services.watchdog.len(), 1);
        drop(held);
        assert_eq!(services.released.in_time.get(), 2);
    });
}

#[test]
fn a_lease_that_is_given_back_while_it_is_renewed_is_given_back_once() {
    for outcome in [
        ExtendOutcome::Extended,
        ExtendOutcome::Missing,
        ExtendOutcome::TakenOver,
    ] {
        model(move || {
            let services = Services::new();
            services.renewed.set(outcome);
            let (held, lease) = held(&services);
            time::set(DUE);
            let holder = spawn(move || drop(block_on(held.release())));
            renew(&services);
            holder.join().unwrap();
            assert_eq!(services.released.in_time.get(), 1);
            assert!(lease.lost().is_some());
            assert_eq!(services.watchdog.len(), 0, "nobody has it any more");
        });
    }
}

#[test]
fn a_lease_found_over_while_it_is_dropped_is_given_back_once() {
    model(|| {
        let services = Services::new();
        let (held, lease) = held(&services);
        time::set(OVER);
        let holder = spawn(move || drop(held));
        renew(&services);
        holder.join().unwrap();
        assert_eq!(services.released.in_time.get(), 1);
        assert!(lease.lost().is_some());
        assert_eq!(services.watchdog.len(), 0);
    });
}

/// The watchdog sleeps without an end while it watches nothing. A missed wake-up shows as a
/// deadlock in loom.
#[test]
fn the_watchdog_wakes_up_for_a_lease_that_is_due_before_it_would_look() {
    model(|| {
        let services = Services::new();
        time::set(OVER);
        let holder = at_once(&services, |services| {
            let (held, _) = held(services);
            // Only the watchdog reports its loss.
            block_on(held.turn().signal().cancelled());
            services.closed.cancel();
            drop(held);
        });
        let watchdog = Arc::clone(&services.watchdog);
        block_on(watchdog.run(Arc::downgrade(&services), services.closed.clone()));
        holder.join().unwrap();
    });
}

#[test]
fn a_lease_that_comes_to_a_shutdown_is_refused_or_given_back() {
    model(|| {
        let services = Services::new();
        let lease = lease();
        let comes = at_once(&services, {
            let lease = Arc::clone(&lease);
            move |services| services.watchdog.watch(&lease, clock::now())
        });
        shut_down(&services);
        let watched = comes.join().unwrap();
        assert_eq!(lease.lost(), Some(&LostCause::ShutDown));
        assert_eq!(services.released.in_time.get(), u32::from(watched));
        assert_eq!(services.watchdog.len(), 0);
    });
}

/// A guard is dropped during a shutdown. One of the two gives the lock back; if the shutdown
/// reports nothing abandoned, it happened before the shutdown ended.
#[test]
fn what_is_dropped_in_a_shutdown_is_given_back_once_and_before_its_end() {
    model(|| {
        let services = Services::new();
        let (held, lease) = held(&services);
        let holder = spawn(move || drop(held));
        let abandoned = shut_down(&services);
        holder.join().unwrap();
        let released = &services.released;
        assert_eq!(released.in_time.get() + released.too_late.get(), 1);
        assert!(abandoned > 0 || released.too_late.get() == 0, "abandoned");
        assert!(lease.lost().is_some());
    });
}

#[test]
fn what_is_renewed_in_a_shutdown_is_given_back_once() {
    model(|| {
        let services = Services::new();
        let (held, lease) = held(&services);
        time::set(DUE);
        let closes = at_once(&services, shut_down);
        renew(&services);
        assert_eq!(closes.join().unwrap(), 0);
        drop(held);
        assert_eq!(services.released.in_time.get(), 1);
        assert_eq!(lease.lost(), Some(&LostCause::ShutDown));
        assert_eq!(services.watchdog.len(), 0);
    });
}
