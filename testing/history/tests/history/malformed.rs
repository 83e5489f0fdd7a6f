//! The checker names impossible histories, and still checks the rest of them.

use super::lives::{Life, assert_failed, check, life, rules};
use locktopus_history::{
    AttemptId, ClockKind, Event, Malformed, Mode, Property, Rules, WriteOutcome,
};

/// Adds an overlap, which must still be found.
#[track_caller]
fn names(lives: impl IntoIterator<Item = Life>, expected: &Malformed) {
    let mut lives: Vec<Life> = lives.into_iter().collect();
    lives.push(life(91).lock("other").got(10, 100, 1));
    lives.push(life(92).lock("other").got(50, 100, 2));
    let verdict = check(lives);
    assert_eq!(
        verdict.malformed,
        std::slice::from_ref(expected),
        "{verdict}"
    );
    let failed = [(Property::WellFormed, 1), (Property::ValidityOverlap, 1)];
    assert_failed(&verdict, &failed);
    assert!(
        verdict.to_string().contains(&expected.to_string()),
        "{verdict}"
    );
}

fn first() -> AttemptId {
    life(1).id()
}

#[test]
fn steps_that_do_not_follow() {
    let attempt = first();
    let held = || life(1).got(10, 100, 1);
    let event = "granted";
    names(
        [life(1).gets(10, 100, 1)],
        &Malformed::NotStarted { attempt, event },
    );
    names(
        [life(1).asks(0).asks(1)],
        &Malformed::StartedTwice { attempt },
    );
    let event = "a use started";
    names(
        [life(1).asks(0).enters(5)],
        &Malformed::NotGranted { attempt, event },
    );
    let event = "a release started";
    let failed = life(1).asks(0).fails(5, None).begins_release(6);
    names([failed], &Malformed::NotGranted { attempt, event });
    let event = "granted";
    let twice = held().gets(11, 100, 2);
    names([twice], &Malformed::AnsweredBefore { attempt, event });
    let event = "failed";
    names(
        [held().fails(11, None)],
        &Malformed::AnsweredBefore { attempt, event },
    );
    let event = "enqueued";
    names(
        [held().queued(11)],
        &Malformed::AnsweredBefore { attempt, event },
    );
    names(
        [held().enters(11).enters(12)],
        &Malformed::UseDuringUse { attempt },
    );
    names([held().leaves(11)], &Malformed::UseNotStarted { attempt });
    names(
        [held().uses(11, 12).leaves(13)],
        &Malformed::UseNotStarted { attempt },
    );
    names(
        [held().ends_release(11)],
        &Malformed::ReleaseNotStarted { attempt },
    );
    let event = "a release started";
    let again = held().releases(11, 12).begins_release(13);
    names([again], &Malformed::ReleasedTwice { attempt, event });
    let event = "a release ended";
    let again = held().releases(11, 12).ends_release(13);
    names([again], &Malformed::ReleasedTwice { attempt, event });
}

#[test]
fn finished_workers_with_unfinished_business() {
    let attempt = first();
    let held = || life(1).got(10, 100, 1);
    let never = |what| Malformed::NeverEnded { attempt, what };
    names([life(1).asks(0).closes(20)], &never("the attempt"));
    names([held().enters(11).closes(20)], &never("a use"));
    names(
        [held().begins_release(11).closes(20)],
        &never("its release"),
    );
    // Keeping a lock until its lease ends is no mistake.
    assert_failed(&check([held().closes(20)]), &[]);
    let after = Malformed::AfterClosed {
        worker: 1,
        event: "a use started",
        at: 30,
    };
    names([held().closes(20).enters(30)], &after);
}

#[test]
fn workers_that_do_not_belong_together() {
    let opens = |worker, format, clock| life(worker).put(0, Event::Opened { format, clock });
    let boot = ClockKind::Boottime;
    let twice = [opens(1, 1, boot), opens(1, 1, boot)];
    names(twice, &Malformed::OpenedTwice { worker: 1 });
    let unknown = Malformed::UnknownFormat {
        worker: 1,
        format: 2,
    };
    names([opens(1, 2, boot)], &unknown);
    let clock = ClockKind::Monotonic;
    let differ = Malformed::ClocksDiffer { worker: 2, clock };
    names([opens(1, 1, boot), opens(2, 1, clock)], &differ);
}

#[test]
fn semaphores_that_are_none() {
    let attempt = first();
    let lock = || "a".to_owned();
    let permits = |count| life(1).permits(count).got(10, 100, None);
    names([permits(1)], &Malformed::NoLimit { lock: lock() });
    names(
        [rules(Some(3), false), permits(0)],
        &Malformed::NoPermits { attempt },
    );
    let mixed = [
        rules(Some(3), false),
        permits(1),
        life(2).mode(Mode::Shared).got(11, 90, None),
    ];
    let attempt = life(2).id();
    names(
        mixed,
        &Malformed::MixedModes {
            lock: lock(),
            attempt,
        },
    );
    let declared = Event::Declared {
        lock: lock(),
        rules: Rules::default(),
    };
    let differ = Malformed::RulesDiffer {
        lock: lock(),
        worker: 5,
    };
    names([rules(None, true), life(5).put(1, declared)], &differ);
}

#[test]
fn resources_that_cannot_count() {
    let resource = || "r".to_owned();
    let held = |worker, token| life(worker).got(10 * token, 10 * token + 5, token);
    let early = held(1, 1).writes(30, 20, 1, WriteOutcome::Accepted);
    let before = Malformed::WriteBeforeIssue {
        attempt: first(),
        resource: resource(),
    };
    names([early], &before);
    let twice = [
        held(1, 1).writes_nth(11, 12, 1, WriteOutcome::Accepted, 4),
        held(2, 2).writes_nth(21, 22, 2, WriteOutcome::Accepted, 4),
    ];
    let repeated = Malformed::OrderTwice {
        resource: resource(),
        order: 4,
        attempt: life(2).id(),
    };
    names(twice, &repeated);
}
