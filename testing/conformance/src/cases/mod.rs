//! The list of cases; each module has those about one subject.

pub mod api_count;
pub mod api_hold;
pub mod api_queue;
pub mod api_rw;
pub mod api_share;
pub mod api_wait;
pub mod blocks;
pub mod contention;
pub mod counter;
pub mod crowd;
pub mod errors;
pub mod evict;
pub mod exclusion;
pub mod expiry;
pub mod extension;
pub mod fencing;
pub mod group;
pub mod halves;
pub mod hand_off;
pub mod idempotence;
pub mod instances;
pub mod kinds;
pub mod latch;
pub mod linger;
pub mod looking;
pub mod names;
pub mod owners;
pub mod permits;
pub mod queue;
pub mod queue_end;
pub mod rate;
pub mod readers;
pub mod recall;
pub mod release;
pub mod rw;
pub mod scan;
pub mod totals;
pub mod wakeup;

use crate::case::Case;
use crate::flavour::Flavour;

macro_rules! list {
    ($($module:ident on $flavours:expr => $($name:ident),+;)+) => {
        list! { queue: false; $($module on $flavours => $($name),+;)+ }
    };
    (queue: $queue:literal; $($module:ident on $flavours:expr => $($name:ident),+;)+) => {
        vec![$($(Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            flavours: $flavours,
            queue: $queue,
            run: |ctx| Box::pin($module::$name(ctx)),
        }),+),+]
    };
}

const API: &[Flavour] = &[
    Flavour::Lock,
    Flavour::Mutex,
    Flavour::SingleKey,
    Flavour::Fair,
];
/// Flavours with messages whose waiters queue, through `Locktopus`.
const QUEUEING: &[Flavour] = &[
    Flavour::Lock,
    Flavour::Mutex,
    Flavour::Fair,
    Flavour::Semaphore,
    Flavour::Permits,
];
const ASKED: &[Flavour] = &[
    Flavour::Lock,
    Flavour::Mutex,
    Flavour::SingleKey,
    Flavour::Fair,
    Flavour::Semaphore,
    Flavour::Permits,
];
/// Flavours shared with libraries whose owner ids have other forms. Redis tells the other kinds
/// apart by the form of the ids.
const ANY_OWNER: &[Flavour] = &[Flavour::Mutex, Flavour::SingleKey];
/// Records are independent of kinds. A quorum has only mutexes.
const LABELLED: &[Flavour] = &[Flavour::Lock, Flavour::Mutex];
const RW: &[Flavour] = &[Flavour::ReadWrite];
const LATCH: &[Flavour] = &[Flavour::Latch];
const RATE: &[Flavour] = &[Flavour::RateLimiter];

/// Every case.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases = basic();
    cases.extend(of_holders());
    cases.extend(of_queues());
    cases.extend(of_kinds());
    cases.extend(of_users());
    cases
}

fn basic() -> Vec<Case> {
    list! {
        exclusion on Flavour::HELD => one_owner_at_a_time, names_are_independent, one_of_many_wins,
            a_refusal_tells_what_is_left;
        expiry on Flavour::HELD => a_lease_ends_by_itself_and_not_early, an_ended_hold_is_gone,
            leases_of_any_length;
        expiry on Flavour::EXCLUSIVE => a_former_holder_cannot_touch_its_successor, a_deleted_lock_is_missing;
        extension on Flavour::HELD => an_extension_moves_the_end, an_extension_never_shortens,
            an_extension_never_creates;
        extension on Flavour::EXCLUSIVE => an_extension_needs_the_owner, batches_answer_in_order;
        extension on Flavour::WITH_TOKENS => an_extension_may_keep_the_token;
        release on Flavour::HELD => a_release_frees, a_release_needs_the_owner, a_release_of_nothing_is_not_held;
        idempotence on Flavour::HELD => a_repeated_attempt_is_one_grant, a_repeated_attempt_never_shortens,
            a_repeated_attempt_may_lengthen, a_repeated_release_is_not_held;
        linger on Flavour::LINGERING => a_lock_can_be_left_held, it_may_be_left_for_longer_than_its_lease,
            who_left_it_has_no_part_in_it, a_stranger_leaves_nothing;
        fencing on Flavour::HELD => tokens_exist_where_promised;
        fencing on Flavour::WITH_TOKENS => tokens_grow_over_grants, tokens_grow_after_expiry,
            tokens_grow_after_deletion;
        fencing on Flavour::EXCLUSIVE => the_state_shows_holder_and_token;
        blocks on Flavour::WITH_TOKENS => a_grant_reserves_what_was_asked_for, a_repeated_block_is_the_same,
            a_floor_raises, a_repetition_raises_to_its_floor;
        wakeup on Flavour::IN_LINE => a_release_wakes_a_subscriber, every_client_is_woken,
            an_unused_hint_is_passed_on, a_dropped_subscription_harms_nobody, two_subscribers_two_releases,
            who_joins_the_listeners_misses_nothing;
        errors on Flavour::HELD => a_spent_deadline_is_answered_soon, a_closed_client_says_so,
            dropped_futures_leave_nothing_for_long, many_calls_at_once, closing_one_client_leaves_others;
        errors on Flavour::EXCLUSIVE => a_late_change_is_told_truly, a_diagnosis_names_nodes, two_kinds_on_one_name_do_no_harm;
        crowd on Flavour::HELD => requests_of_all_sorts_are_each_answered, one_of_a_crowd_is_refused,
            one_of_a_crowd_is_late, some_of_a_crowd_are_dropped;
        names on Flavour::TAKEN => unusual_names_are_locks_or_refused, long_names_are_locks_or_refused;
        owners on ANY_OWNER => ids_that_are_no_text_are_kept_apart;
    }
}

fn of_queues() -> Vec<Case> {
    list! {
        queue: true;
        blocks on Flavour::WITH_TOKENS => a_waiter_reserves_its_block;
        queue on Flavour::IN_LINE => first_come_first_served, a_place_keeps_its_order, a_place_is_counted,
            a_first_attempt_is_in_line_too, a_release_gives_up_a_place, a_refusal_leaves_no_place;
        queue on Flavour::QUEUED => nobody_overtakes_a_waiter;
        queue_end on Flavour::IN_LINE => a_place_lapses_and_not_early, a_repeated_place_stays;
        queue_end on Flavour::QUEUED => a_dead_waiter_is_passed, many_dead_waiters_are_passed_together,
            a_head_that_leaves_a_free_lock_lets_the_next_in, the_last_that_leaves_a_free_lock_tells_the_others;
        hand_off on Flavour::IN_LINE => a_release_makes_the_first_waiter_holder, a_cancelled_waiter_is_skipped,
            a_grant_that_is_given_up_goes_on, a_repeated_release_hands_on_once;
        hand_off on Flavour::QUEUED => a_handed_lease_counts_in_full;
        linger on Flavour::LINGERING_QUEUED => a_waiter_is_not_handed_what_was_left;
        evict on Flavour::IN_LINE => an_eviction_hands_on;
        kinds on Flavour::ONE_QUEUE => a_queue_belongs_to_its_kind;
        api_queue on QUEUEING => waiters_are_served_in_order, a_confirmed_grant_is_a_grant,
            a_wait_that_ends_lets_the_next_one_in;
    }
}

fn of_holders() -> Vec<Case> {
    list! {
        group on Flavour::QUEUED => a_group_is_taken_together, a_group_is_all_or_nothing,
            a_repeated_group_is_one_grant, a_group_overtakes_nobody;
        recall on Flavour::KEPT => a_holder_that_asked_is_told, a_waiter_tells_the_holder, a_group_tells_the_holder,
            an_eviction_tells_the_holder, a_holder_that_did_not_ask_is_not_told, a_former_holder_is_not_told;
        recall on Flavour::HELD => asking_to_be_told_changes_nothing_else;
        evict on Flavour::IN_LINE => an_eviction_of_nothing_is_harmless;
        evict on Flavour::QUEUED => an_eviction_ends_the_hold;
        evict on Flavour::WITH_TOKENS => an_eviction_fences;
        instances on LABELLED => what_was_announced_is_told, a_record_ends_by_itself,
            a_closed_client_announces_nothing;
        instances on ASKED => holders_and_waiters_are_known_by_their_label;
        instances on Flavour::EXCLUSIVE => the_time_of_a_hold_is_told_truly;
        scan on Flavour::WITH_TOKENS => held_locks_are_found, a_prefix_is_not_a_pattern;
    }
}

fn of_kinds() -> Vec<Case> {
    list! {
        rw on RW => readers_share, a_writer_is_alone, a_writer_may_go_on_as_reader,
            waiting_readers_go_together, a_waiting_writer_holds_back_readers,
            a_writer_that_goes_lets_readers_in, the_gone_are_told;
        halves on RW => writing_ends_while_reading_goes_on, reading_ends_while_writing_goes_on,
            who_stops_writing_holds_for_its_reading, who_stops_reading_holds_for_its_writing, each_half_is_extended_alone,
            waiting_readers_get_in_when_writing_ends;
        readers on RW => each_reader_has_its_own_end, a_writer_waits_for_the_last_reader,
            a_reader_is_released_once, a_repeated_reader_is_one_reader, an_extension_is_for_one_reader;
        permits on Flavour::PERMITS => nothing_is_had_before_there_are_permits, permits_are_counted,
            a_release_returns_all_permits, a_repetition_takes_and_returns_once, a_big_request_is_not_starved, a_big_request_that_goes_lets_others_in,
            several_waiters_go_at_once, an_eviction_returns_permits, a_crowd_shares_the_permits;
        permits on Flavour::COUNTED => a_lease_that_ends_returns_its_permits, permits_end_one_by_one,
            an_extension_keeps_the_permits;
        looking on Flavour::COUNTED => permits_that_come_back_are_announced_whoever_looked;
        counter on Flavour::COUNTED => permits_are_given_once, permits_are_added_and_drained,
            a_total_may_fall_below_what_is_held, an_operation_counts_once, more_permits_go_to_waiters,
            permits_can_be_forgotten;
        totals on Flavour::COUNTED => more_than_there_are_is_an_error_at_once, waiters_for_too_many_are_told,
            waiters_for_too_many_hold_up_nobody;
        counter on Flavour::COUNTED => a_number_that_is_lost_makes_no_more_permits;
        kinds on &Flavour::ALL => another_kind_is_refused_and_changes_nothing, a_waiter_for_another_kind_is_told_at_once,
            a_name_that_is_free_again_may_be_another_kind;
        kinds on Flavour::GROUPED => a_group_with_another_kind_is_not_taken;
        rate on RATE => permits_come_back_after_a_period, waiters_are_handed_permits_in_order,
            a_higher_rate_serves_waiters;
        latch on LATCH => a_latch_counts_down, zero_wakes_everybody, below_zero_is_harmless,
            a_count_counts_once, a_latch_is_deleted_and_set_again, a_latch_is_not_held;
    }
}

fn of_users() -> Vec<Case> {
    list! {
        api_wait on ASKED => a_try_does_not_wait, a_wait_ends_in_time, a_cancelled_wait_ends, a_waiter_gets_the_lock,
            a_waiter_gets_an_expired_lock, a_dropped_waiter_leaves_nothing, waiters_get_their_turns;
        api_queue on QUEUEING => every_strategy_gets_its_turn;
        api_hold on ASKED => the_watchdog_renews, an_explicit_lease_ends_on_time, a_hold_ends_at_its_maximum,
            work_is_dropped_when_the_lock_is_lost, work_is_done_under_the_lock, an_extension_counts,
            a_dropped_guard_gives_back;
        linger on API => a_job_that_ends_early_is_not_run_again;
        api_hold on API => a_deleted_lock_is_lost;
        api_share on API => guards_enter_again, owners_enter_again, tickets_are_adopted, a_late_ticket_is_refused,
            namespaces_keep_apart, the_state_is_readable;
        api_share on ASKED => a_shutdown_gives_back;
        api_rw on RW => readers_read_together, a_writer_writes_alone, a_writer_becomes_a_reader,
            an_owner_reads_what_it_writes,
            an_owner_that_only_reads_lets_readers_in, waiting_halves_take_turns;
        api_count on Flavour::COUNTED => permits_are_shared_out, a_waiter_gets_permits_that_are_given,
            a_wait_for_permits_can_be_dropped, permits_of_a_dead_holder_come_back, permits_that_there_are_not_are_an_error;
        api_count on LATCH => a_latch_is_waited_for, a_wait_for_a_latch_ends;
        contention on ASKED => a_crowd_is_serialised;
    }
}
