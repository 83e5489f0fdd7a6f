//! The suite can fail: if a backend breaks one rule, a case about that rule reports it.

#[path = "mutants_common/mod.rs"]
mod common;

use common::Mutation;
use locktopus_conformance::Flavour;

/// Expands to one test for each mutation, with the words that some failure must contain.
macro_rules! killed {
    ($($test:ident: $mutation:ident, $($words:literal),+;)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            let failures = common::failures(Mutation::$mutation, &[Flavour::Lock, Flavour::Mutex], None).await;
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
    let failures = common::failures(Mutation::None, &Flavour::ALL, None).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

/// As `killed`, on one flavour, with only the cases of that name.
macro_rules! caught {
    ($($test:ident: $mutation:ident on $flavour:ident by $only:literal;)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            let failures = common::failures(Mutation::$mutation, &[Flavour::$flavour], Some($only)).await;
            assert!(
                !failures.is_empty(),
                "no case {:?} reports {:?} on {:?}",
                $only,
                Mutation::$mutation,
                Flavour::$flavour,
            );
        }
    )+};
}

caught! {
    a_kept_token_without_a_lease_is_reported: ExtendIgnored on Mutex by "extension::an_extension_may_keep_the_token";
    a_kept_token_that_creates_is_reported: ExtendCreates on Lock by "extension::an_extension_may_keep_the_token";
    records_that_stay_are_reported: RecordsStay on Lock by "instances::a_record_ends_by_itself";
    records_that_cannot_be_taken_back_are_reported: RecordsStay on Lock by "instances::what_was_announced_is_told";
    a_label_after_the_end_is_reported: RecordsStay on Fair by "instances::holders_and_waiters_are_known_by_their_label";
    records_of_others_are_reported: RecordsOutOfOrder on Mutex by "instances::what_was_announced_is_told";
    records_of_other_namespaces_are_reported: RecordsOfAllNamespaces on Lock by "instances::what_was_announced_is_told";
    a_hold_that_is_told_too_long_is_reported: HeldForLonger on Lock by "instances::the_time_of_a_hold_is_told_truly";
    a_hold_that_is_told_too_short_is_reported: HeldForNothing on Lock by "instances::the_time_of_a_hold_is_told_truly";
    rare_double_grants_are_reported: GrantsTwiceRarely on Lock by "contention::a_crowd_is_serialised";
    a_queue_turned_round_is_reported: LastComeFirst on Lock by "queue::first_come_first_served";
    an_overtaker_is_reported: Overtakes on Lock by "queue::nobody_overtakes_a_waiter";
    an_overtaker_of_a_writer_is_reported: OvertakesSharing on ReadWrite by "rw::a_waiting_writer_holds_back_readers";
    an_overtaker_of_a_big_request_is_reported: OvertakesSharing on Semaphore by "permits::a_big_request_is_not_starved";
    a_repetition_that_moves_is_reported: RepeatingMoves on Fair by "queue::a_place_keeps_its_order";
    an_endless_place_is_reported: PlacesStay on Mutex by "queue_end::a_place_lapses_and_not_early";
    a_place_that_lapses_early_is_reported: PlacesAreShort on Mutex by "queue_end::a_place_lapses_and_not_early";
    a_repeated_place_that_lapses_is_reported: PlacesAreNotRenewed on Mutex by "queue_end::a_repeated_place_stays";
    a_dead_waiter_in_the_way_is_reported: PlacesStay on Lock by "queue_end::many_dead_waiters_are_passed_together";
    an_unwanted_place_is_reported: PlaceUnasked on Lock by "queue::a_refusal_leaves_no_place";
    a_wrong_number_ahead_is_reported: NoneAhead on Lock by "queue::a_place_is_counted";
    a_place_that_cannot_be_given_up_is_reported: ReleaseKeepsPlaces on Lock by "queue::a_release_gives_up_a_place";
    a_cancelled_waiter_that_is_served_is_reported: ReleaseKeepsPlaces on Permits by "hand_off::a_cancelled_waiter_is_skipped";
    a_release_to_nobody_is_reported: NoHandOff on Lock by "hand_off::a_release_makes_the_first_waiter_holder";
    a_grant_that_ends_with_its_owner_is_reported: NoHandOff on Lock by "hand_off::a_grant_that_is_given_up_goes_on";
    a_grant_in_silence_is_reported: NoPushes on Lock by "hand_off::a_release_makes_the_first_waiter_holder";
    a_release_to_the_last_is_reported: HandsOnToLast on ReadWrite by "hand_off::a_release_makes_the_first_waiter_holder";
    a_big_request_that_goes_in_silence_is_reported: LeavesInSilence on Permits by "permits::a_big_request_that_goes";
    a_writer_that_goes_in_silence_is_reported: LeavesInSilence on ReadWrite by "rw::a_writer_that_goes";
    a_head_that_leaves_in_silence_is_reported: LeavesInSilence on Lock by "queue_end::a_head_that_leaves_a_free_lock";
    a_last_waiter_that_leaves_in_silence_is_reported: NoHints on Lock by "queue_end::the_last_that_leaves_a_free_lock";
    permits_found_in_silence_are_reported: NoHints on Semaphore by "looking::permits_that_come_back";
    a_look_that_takes_back_is_reported: LooksTakeBack on Permits by "looking::permits_that_come_back";
    a_release_handed_on_twice_is_reported: HandsOnTwice on Lock by "hand_off::a_repeated_release_hands_on_once";
    a_fence_above_the_grant_is_reported: FenceTooHigh on Lock by "hand_off::a_release_makes_the_first_waiter_holder";
    a_lease_that_began_in_the_queue_is_reported: HandedLeaseIsOld on Fair by "hand_off::a_handed_lease_counts_in_full";
    a_dead_listener_is_reported: JoinsNobody on Lock by "wakeup::who_joins_the_listeners_misses_nothing";
    a_holder_that_is_not_told_is_reported: TellsNobody on Lock by "recall::a_holder_that_asked_is_told";
    a_holder_that_waiters_do_not_tell_is_reported: TellsNobody on Mutex by "recall::a_waiter_tells_the_holder";
    a_holder_that_a_group_does_not_tell_is_reported: TellsNobody on Lock by "recall::a_group_tells_the_holder";
    a_silent_eviction_is_reported: TellsNobody on Mutex by "recall::an_eviction_tells_the_holder";
    a_holder_that_is_told_unasked_is_reported: TellsUnasked on Lock by "recall::a_holder_that_did_not_ask_is_not_told";
    a_successor_that_is_told_unasked_is_reported: TellsUnasked on Mutex by "recall::a_former_holder_is_not_told";
    a_block_of_one_is_reported: OneTokenOnly on Lock by "blocks::a_grant_reserves_what_was_asked_for";
    a_waiters_block_of_one_is_reported: OneTokenOnly on Fair by "blocks::a_waiter_reserves_its_block";
    a_new_block_for_a_repetition_is_reported: TokenPerAttempt on Lock by "blocks::a_repeated_block_is_the_same";
    an_ignored_floor_is_reported: NoFloor on Lock by "blocks::a_floor_raises";
    an_ignored_floor_of_a_repetition_is_reported: NoFloor on Lock by "blocks::a_repetition_raises_to_its_floor";
    half_a_group_is_reported: GroupsInPart on Lock by "group::a_group_is_all_or_nothing";
    a_wrong_culprit_is_reported: GroupsBlameFirst on Lock by "group::a_group_is_all_or_nothing";
    a_group_that_cannot_be_repeated_is_reported: GroupsOnce on Mutex by "group::a_repeated_group_is_one_grant";
    a_group_that_overtakes_is_reported: GroupsOvertake on Fair by "group::a_group_overtakes_nobody";
    tokens_of_a_group_out_of_order_are_reported: GroupTokensReversed on Lock by "group::a_group_is_taken_together";
    a_lonely_reader_is_reported: OneReaderOnly on ReadWrite by "rw::readers_share";
    a_missing_downgrade_is_reported: NoDowngrade on ReadWrite by "rw::a_writer_may_go_on_as_reader";
    a_writer_among_readers_is_reported: WritersJoinReaders on ReadWrite by "rw::readers_share";
    a_writer_before_the_last_reader_is_reported: WritersJoinReaders on ReadWrite by "readers::a_writer_waits";
    readers_one_by_one_are_reported: HandsOnToOne on ReadWrite by "rw::waiting_readers_go_together";
    an_extension_for_all_readers_is_reported: ExtendsEveryHolder on ReadWrite by "readers::an_extension_is_for_one";
    a_release_of_another_reader_is_reported: ReleasesAnotherReader on ReadWrite by "readers::a_reader_is_released_once";
    a_reader_without_end_is_reported: LeaseIgnored on ReadWrite by "readers::each_reader_has_its_own_end";
    a_repeated_reader_that_is_refused_is_reported: RefusesRepetition on ReadWrite by "readers::a_repeated_reader";
    an_unaware_former_writer_is_reported: TakenOverAsMissing on ReadWrite by "rw::the_gone_are_told";
    two_writers_are_reported: GrantsTwice on ReadWrite by "rw::a_writer_is_alone";
    permits_from_nothing_are_reported: GrantsFromNothing on Semaphore by "permits::nothing_is_had";
    too_many_permits_are_reported: GrantsTwice on Permits by "permits::permits_are_counted";
    a_crowd_of_holders_is_reported: GrantsTwiceRarely on Semaphore by "permits::a_crowd_shares_the_permits";
    lost_permits_are_reported: ReturnsOne on Semaphore by "permits::a_release_returns_all_permits";
    invented_permits_are_reported: ReturnsTwice on Permits by "permits::a_repetition_takes_and_returns_once";
    permits_taken_twice_are_reported: TakesAgain on Semaphore by "permits::a_repetition_takes_and_returns_once";
    permits_to_one_waiter_only_are_reported: HandsOnToOne on Semaphore by "permits::several_waiters_go_at_once";
    permits_that_stay_away_are_reported: LeaseIgnored on Semaphore by "permits::a_lease_that_ends";
    permits_that_come_back_early_are_reported: LeaseHalved on Permits by "permits::a_lease_that_ends";
    permits_that_end_together_are_reported: LeaseIgnored on Permits by "permits::permits_end_one_by_one";
    permits_that_are_not_extended_are_reported: ExtendIgnored on Semaphore by "permits::an_extension_keeps";
    permits_given_again_are_reported: InitialisesAgain on Semaphore by "counter::permits_are_given_once";
    a_drain_of_nothing_is_reported: DrainsNothing on Semaphore by "counter::permits_are_added_and_drained";
    an_operation_that_counts_twice_is_reported: OperationsRepeat on Permits by "counter::an_operation_counts_once";
    a_total_that_cannot_fall_is_reported: ResizeStopsAtZero on Semaphore by "counter::a_total_may_fall";
    permits_added_for_nobody_are_reported: AddsForNobody on Semaphore by "counter::more_permits_go_to_waiters";
    an_unforgettable_semaphore_is_reported: DeletesNothing on Semaphore by "counter::permits_can_be_forgotten";
    a_latch_set_twice_is_reported: InitialisesAgain on Latch by "latch::a_latch_counts_down";
    a_silent_latch_is_reported: NoHints on Latch by "latch::zero_wakes_everybody";
    a_latch_below_zero_is_reported: BelowZero on Latch by "latch::below_zero_is_harmless";
    a_count_that_counts_twice_is_reported: OperationsRepeat on Latch by "latch::a_count_counts_once";
    an_undeletable_latch_is_reported: DeletesNothing on Latch by "latch::a_latch_is_deleted_and_set_again";
    a_latch_that_is_held_is_reported: LatchIsHeld on Latch by "latch::a_latch_is_not_held";
    permits_of_a_forgotten_semaphore_are_reported: ReturnsTwice on Semaphore by "counter::a_number_that_is_lost";
    another_kind_that_counts_as_held_is_reported: OtherKindIsHeld on Lock by "kinds::another_kind_is_refused";
    another_kind_that_is_waited_for_is_reported: OtherKindQueues on Mutex by "kinds::a_waiter_for_another_kind";
    another_kind_that_is_tried_again_is_reported: OtherKindIsTransient on Semaphore by "kinds::a_waiter_for_another_kind";
    another_kind_that_is_shown_is_reported: OtherKindIsShown on ReadWrite by "kinds::another_kind_is_refused";
    another_kind_that_counts_is_reported: OtherKindCounts on Permits by "kinds::another_kind_is_refused";
    a_latch_on_a_lock_is_reported: OtherKindCounts on Fair by "kinds::another_kind_is_refused";
    an_eviction_of_another_kind_is_reported: OtherKindIsEvicted on Latch by "kinds::another_kind_is_refused";
    a_release_of_another_kind_is_reported: OtherKindIsReleased on Lock by "kinds::another_kind_is_refused";
    another_kind_in_a_group_is_reported: OtherKindInGroups on Mutex by "kinds::a_group_with_another_kind";
    a_queue_of_another_kind_is_reported: OtherKindIsHeld on Lock by "kinds::a_queue_belongs_to_its_kind";
    a_lock_that_is_not_left_held_is_reported: LeavesNothing on Lock by "linger::a_lock_can_be_left_held";
    a_job_that_is_run_again_is_reported: LeavesNothing on SingleKey by "linger::a_job_that_ends_early";
    a_lock_that_is_handed_on_early_is_reported: LeavesNothing on Fair by "linger::a_waiter_is_not_handed";
    a_lock_that_stays_its_owners_is_reported: LeavesToOwner on Mutex by "linger::who_left_it";
    a_lock_that_is_left_for_too_long_is_reported: LeavesWhatWasLeft on Lock by "linger::a_lock_can_be_left_held";
    a_short_time_that_stays_short_is_reported: LeavesNothing on Mutex by "linger::it_may_be_left_for_longer";
    an_eviction_of_nobody_is_reported: EvictsNobody on Lock by "evict::an_eviction_ends_the_hold";
    an_eviction_in_silence_is_reported: EvictsInSilence on Mutex by "evict::an_eviction_ends_the_hold";
    an_eviction_of_waiters_is_reported: EvictsWaiters on Lock by "evict::an_eviction_hands_on";
    a_fence_that_is_too_high_is_reported: EvictionFenceTooHigh on Lock by "evict::an_eviction_fences";
    a_fence_that_is_too_low_is_reported: EvictionFenceTooLow on Lock by "evict::an_eviction_fences";
    an_eviction_that_loses_permits_is_reported: EvictionLosesPermits on Semaphore by "permits::an_eviction_returns";
    a_list_of_one_page_is_reported: ListsOnePage on Lock by "scan::held_locks_are_found";
    a_list_of_everything_is_reported: ListsEverything on Lock by "scan::held_locks_are_found";
    a_list_of_free_locks_is_reported: ListsFreeLocks on Fair by "scan::held_locks_are_found";
    a_list_of_a_closed_client_is_reported: ListsWhenClosed on Lock by "errors::a_closed_client_says_so";
    an_eviction_by_a_closed_client_is_reported: EvictsWhenClosed on Mutex by "errors::a_closed_client_says_so";
    a_lie_about_a_late_release_is_reported: LiesAboutRelease on Lock by "errors::a_late_change_is_told_truly";
    a_lie_about_a_late_extension_is_reported: LiesAboutExtension on SingleKey by "errors::a_late_change_is_told_truly";
    a_lie_about_a_late_eviction_is_reported: LiesAboutEviction on Fair by "errors::a_late_change_is_told_truly";
    owners_turned_into_text_are_reported: OwnersAreText on Mutex by "owners::ids_that_are_no_text";
    owners_cut_at_a_zero_are_reported: OwnersEndAtZero on SingleKey by "owners::ids_that_are_no_text";
    a_list_by_pattern_is_reported: ListsByPattern on Lock by "scan::a_prefix_is_not_a_pattern";
}
