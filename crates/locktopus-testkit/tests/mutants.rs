//! The suite can fail: a backend that breaks one rule is reported by a case about that rule.

#[path = "mutants_common/mod.rs"]
mod common;

use common::Mutation;
use locktopus_testkit::conformance::Flavour;

/// Expands to one test for each mutation: the words that some failure must contain.
macro_rules! killed {
    ($($test:ident: $mutation:ident, $($words:literal),+;)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            let failures = common::failures(Mutation::$mutation, &[Flavour::Lock, Flavour::Mutex]).await;
            println!("{} cases report {:?}", failures.len(), Mutation::$mutation);
            $(assert!(
                failures.iter().any(|failure| failure.contains($words)),
                "no case reports {:?} with {:?}: {failures:#?}",
                Mutation::$mutation,
                $words,
            );)+
        }
    )+};
}

killed! {
    a_release_without_owner_is_reported: ReleaseOfAnybody, "release::a_release_needs_the_owner", "rule Ownership";
    a_renewal_that_creates_is_reported: ExtendCreates, "extension::an_extension_never_creates";
    a_renewal_of_anybody_is_reported: ExtendOfAnybody, "extension::an_extension_needs_the_owner";
    a_renewal_that_shortens_is_reported: ExtendShortens, "extension::an_extension_never_shortens";
    a_renewal_that_does_nothing_is_reported: ExtendIgnored, "extension::an_extension_moves_the_end",
        "api_hold::the_watchdog_renews";
    a_batch_out_of_order_is_reported: BatchReversed, "extension::batches_answer_in_order";
    constant_tokens_are_reported: TokensConstant, "fencing::tokens_grow_over_grants",
        "contention::a_crowd_is_serialised";
    tokens_that_repeat_are_reported: TokensInPairs, "fencing::tokens_grow_over_grants", "contention::a_crowd_is_serialised";
    a_new_token_for_a_repetition_is_reported: TokenPerAttempt, "idempotence::a_repeated_attempt_is_one_grant";
    missing_tokens_are_reported: TokensMissing, "fencing::tokens_exist_where_promised";
    two_grants_are_reported: GrantsTwice, "rule Exclusion";
    rare_double_grants_are_reported: GrantsTwiceRarely, "contention::a_crowd_is_serialised";
    counted_attempts_are_reported: CountsAttempts, "idempotence::a_repeated_attempt_is_one_grant";
    a_refused_repetition_is_reported: RefusesRepetition, "idempotence::";
    lost_hints_are_reported: NoHints, "wakeup::a_release_wakes_a_subscriber", "api_wait::a_waiter_gets_the_lock";
    rarely_lost_hints_are_reported: SomeHintsLost, "rule Wakes";
    endless_leases_are_reported: LeaseIgnored, "expiry::a_lease_ends_by_itself_and_not_early";
    short_leases_are_reported: LeaseHalved, "expiry::a_lease_ends_by_itself_and_not_early";
    a_lie_about_effects_is_reported: LiesAboutEffect, "errors::a_spent_deadline_is_answered_soon", "rule Errors";
    an_ignored_deadline_is_reported: HangsAtDeadline, "rule Deadlines";
    an_open_client_after_close_is_reported: StaysOpen, "errors::a_closed_client_says_so";
    a_blind_inspection_is_reported: InspectsNothing, "rule Inspection";
    an_unknown_holder_is_reported: TakenOverAsMissing, "extension::an_extension_needs_the_owner";
    names_that_collide_are_reported: NamesFolded, "rule Names";
    cut_names_are_reported: NamesCut, "names::long_names_are_locks_or_refused";
    a_silent_release_is_reported: ReleasesNothing, "release::a_release_frees";
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_backend_is_not_reported() {
    let failures = common::failures(Mutation::None, &Flavour::ALL).await;
    assert!(failures.is_empty(), "{failures:#?}");
}
