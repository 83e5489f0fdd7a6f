//! The steps in docs/fencing.md for object stores, in every interleaving of several writers, on an
//! in-memory store with the conditional writes that real stores document.

use locktopus_contract::{FencingToken, LockKind, LockName, LockTarget, OwnerId};
use locktopus_fence::Fence;

/// An object, with its fence in the metadata.
#[derive(Debug, Clone)]
struct Object {
    etag: u32,
    fence: Fence,
}

/// The next step of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Read,
    /// With `If-Match`, or with `If-None-Match: *` if there was no object.
    Write(Option<u32>),
    Stopped,
    Written,
}

#[derive(Debug, Clone)]
struct Writer {
    fence: Fence,
    next: Next,
}

/// Which steps of the page are kept.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// A fence that is newer, or has no order to one's own, stops the writer.
    looks: bool,
    /// Writes have a condition.
    condition: bool,
}

const WHOLE: Page = Page {
    looks: true,
    condition: true,
};

#[derive(Debug, Clone)]
struct World {
    object: Option<Object>,
    writers: Vec<Writer>,
    /// Something that is not older was overwritten.
    harmed: bool,
}

impl World {
    fn new(fences: &[Fence]) -> Self {
        let writer = |fence: &Fence| Writer {
            fence: fence.clone(),
            next: Next::Read,
        };
        Self {
            object: None,
            writers: fences.iter().map(writer).collect(),
            harmed: false,
        }
    }

    fn step(&mut self, page: Page, writer: usize) {
        let Writer { fence, next } = &mut self.writers[writer];
        let etag = self.object.as_ref().map(|object| object.etag);
        let passes = |object: &Object| object.fence <= *fence;
        *next = match *next {
            Next::Read if page.looks && !self.object.as_ref().is_none_or(passes) => Next::Stopped,
            Next::Read => Next::Write(etag),
            // 412: another writer came in between.
            Next::Write(seen) if page.condition && seen != etag => Next::Read,
            Next::Write(_) => {
                self.harmed |= !self.object.as_ref().is_none_or(passes);
                self.object = Some(Object {
                    etag: etag.unwrap_or(0) + 1,
                    fence: fence.clone(),
                });
                Next::Written
            }
            Next::Stopped | Next::Written => unreachable!("it is done"),
        };
    }

    /// The end of every interleaving.
    fn ends(self, page: Page, ends: &mut Vec<Self>) {
        let is_done = |writer: &Writer| matches!(writer.next, Next::Stopped | Next::Written);
        let todo = self.writers.iter().enumerate();
        let todo: Vec<usize> = todo
            .filter(|(_, writer)| !is_done(writer))
            .map(|(at, _)| at)
            .collect();
        for writer in &todo {
            let mut next = self.clone();
            next.step(page, *writer);
            next.ends(page, ends);
        }
        if todo.is_empty() {
            ends.push(self);
        }
    }
}

fn ends(page: Page, fences: &[Fence]) -> Vec<World> {
    let mut ends = Vec::new();
    World::new(fences).ends(page, &mut ends);
    ends
}

/// A new holder's fence.
fn fence(lock: &str, token: u64) -> Fence {
    let target = LockTarget::new(LockName::new(lock).unwrap(), LockKind::Reentrant);
    Fence::new(&target, FencingToken::new(token).unwrap()).held_by(&OwnerId::generate())
}

#[test]
fn the_newest_holder_writes_last_in_every_order() {
    let fences = [fence("a", 1), fence("a", 2), fence("a", 3)];
    let ends = ends(WHOLE, &fences);
    assert!(ends.len() > 100, "{} orders", ends.len());
    for end in ends {
        assert!(!end.harmed, "{end:?}");
        assert_eq!(end.object.unwrap().fence, fences[2]);
        assert_eq!(end.writers[2].next, Next::Written, "nobody stops it");
    }
}

/// The first one wins, and is not overwritten.
#[test]
fn one_of_two_that_have_no_order_writes() {
    for other in [fence("a", 2), fence("b", 9)] {
        let ends = ends(WHOLE, &[fence("a", 2), other]);
        for end in &ends {
            let written = |writer: &&Writer| writer.next == Next::Written;
            assert!(!end.harmed, "{end:?}");
            assert_eq!(end.writers.iter().filter(written).count(), 1, "{end:?}");
        }
    }
}

/// A holder writes more than once, even with its own write in between.
#[test]
fn a_holder_is_not_stopped_by_itself() {
    let own = fence("a", 2);
    for end in ends(WHOLE, &[own.clone(), own]) {
        let written = |writer: &Writer| writer.next == Next::Written;
        assert!(!end.harmed && end.writers.iter().all(written), "{end:?}");
    }
}

/// Each half of the steps is necessary.
#[test]
fn without_the_look_or_the_condition_an_old_holder_overwrites() {
    let halves = [
        Page {
            looks: false,
            ..WHOLE
        },
        Page {
            condition: false,
            ..WHOLE
        },
    ];
    for page in halves {
        let ends = ends(page, &[fence("a", 1), fence("a", 2)]);
        assert!(ends.iter().any(|end| end.harmed), "{page:?}");
    }
}
