//! The names of the mutants.

macro_rules! mutations {
    ($($name:ident)+) => {
        /// The rule that a mutant breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Mutation {
            $($name),+
        }
    };
}

mutations! {
    None ReleaseOfAnybody ReleasesNothing ExtendCreates ExtendOfAnybody ExtendShortens ExtendIgnored
    BatchReversed TokensConstant TokensInPairs TokenPerAttempt TokensMissing GrantsTwice
    GrantsTwiceRarely CountsAttempts RefusesRepetition NoHints SomeHintsLost LeaseIgnored
    LeaseHalved LiesAboutEffect LiesAboutRelease LiesAboutExtension LiesAboutEviction
    HangsAtDeadline StaysOpen InspectsNothing LooksTakeBack TakenOverAsMissing NamesFolded NamesCut
    OwnersAreText OwnersEndAtZero
    // Holders, and since when they hold.
    RecordsStay RecordsOutOfOrder RecordsOfAllNamespaces HeldForLonger HeldForNothing
    // Queues and hand-off.
    LastComeFirst Overtakes OvertakesSharing RepeatingMoves PlacesStay PlacesAreShort
    PlacesAreNotRenewed PlaceUnasked NoneAhead FenceTooHigh ReleaseKeepsPlaces NoHandOff
    LeavesInSilence NoPushes HandsOnTwice HandsOnToOne HandsOnToLast HandedLeaseIsOld JoinsNobody
    // Holders that ask to be notified.
    TellsNobody TellsUnasked
    // Tokens and groups.
    OneTokenOnly NoFloor GroupsInPart GroupsBlameFirst GroupsOnce GroupsOvertake GroupTokensReversed
    // Readers and writers.
    OneReaderOnly NoDowngrade WritersJoinReaders ExtendsEveryHolder ReleasesAnotherReader
    // Permits and latches.
    GrantsFromNothing TakesAgain ReturnsOne ReturnsTwice InitialisesAgain OperationsRepeat
    ResizeStopsAtZero DrainsNothing DeletesNothing AddsForNobody BelowZero LatchIsHeld
    // Kinds of one name.
    OtherKindIsHeld OtherKindQueues OtherKindIsTransient OtherKindIsShown OtherKindCounts
    OtherKindIsEvicted OtherKindIsReleased OtherKindInGroups
    // Locks that are left held.
    LeavesNothing LeavesToOwner LeavesWhatWasLeft
    // Evictions and lists.
    EvictsNobody EvictsInSilence EvictsWaiters EvictionFenceTooHigh EvictionFenceTooLow
    EvictionLosesPermits ListsOnePage ListsEverything ListsByPattern ListsFreeLocks ListsWhenClosed
    EvictsWhenClosed
}
