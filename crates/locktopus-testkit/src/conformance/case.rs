//! The list of cases.

use std::future::Future;
use std::pin::Pin;

use super::ctx::Ctx;
use super::{
    api_hold, api_share, api_wait, contention, errors, exclusion, expiry, extension, fencing,
    idempotence, names, release, wakeup,
};

/// A case under way.
pub type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One rule, tried out. Panics if the rule is broken.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    name: &'static str,
    run: fn(Ctx) -> CaseFuture,
}

impl Case {
    /// Module and name, for example `exclusion::one_owner_at_a_time`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Starts it.
    #[must_use]
    pub fn run(&self, ctx: Ctx) -> CaseFuture {
        (self.run)(ctx)
    }
}

macro_rules! list {
    ($($module:ident: $($name:ident),+;)+) => {
        vec![$($(Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            run: |ctx| Box::pin($module::$name(ctx)),
        }),+),+]
    };
}

/// Every case.
#[must_use]
pub fn cases() -> Vec<Case> {
    list! {
        exclusion: one_owner_at_a_time, names_are_independent, one_of_many_wins, a_refusal_tells_what_is_left;
        expiry: a_lease_ends_by_itself_and_not_early, an_ended_hold_is_gone,
            a_former_holder_cannot_touch_its_successor, leases_of_any_length, a_deleted_lock_is_missing;
        extension: an_extension_moves_the_end, an_extension_never_shortens, an_extension_never_creates,
            an_extension_needs_the_owner, batches_answer_in_order;
        release: a_release_frees, a_release_needs_the_owner, a_release_of_nothing_is_not_held;
        idempotence: a_repeated_attempt_is_one_grant, a_repeated_attempt_never_shortens,
            a_repeated_attempt_may_lengthen, a_repeated_release_is_not_held;
        fencing: tokens_exist_where_promised, tokens_grow_over_grants, tokens_grow_after_expiry,
            tokens_grow_after_deletion, the_state_shows_holder_and_token;
        wakeup: a_release_wakes_a_subscriber, every_client_is_woken, an_unused_hint_is_passed_on,
            a_dropped_subscription_harms_nobody, two_subscribers_two_releases;
        errors: a_spent_deadline_is_answered_soon, a_closed_client_says_so, closing_one_client_leaves_others,
            dropped_futures_leave_nothing_for_long, many_calls_at_once, a_diagnosis_names_nodes,
            two_kinds_on_one_name_do_no_harm;
        names: unusual_names_are_locks_or_refused, long_names_are_locks_or_refused;
        api_wait: a_try_does_not_wait, a_wait_ends_in_time, a_cancelled_wait_ends, a_waiter_gets_the_lock,
            a_waiter_gets_an_expired_lock, a_dropped_waiter_leaves_nothing, waiters_get_their_turns;
        api_hold: the_watchdog_renews, an_explicit_lease_ends_on_time, a_hold_ends_at_its_maximum,
            a_deleted_lock_is_lost, work_is_dropped_when_the_lock_is_lost, work_is_done_under_the_lock,
            an_extension_counts, a_dropped_guard_gives_back;
        api_share: guards_enter_again, owners_enter_again, tickets_are_adopted, a_late_ticket_is_refused,
            a_shutdown_gives_back, namespaces_keep_apart, the_state_is_readable;
        contention: a_crowd_is_serialised;
    }
}
