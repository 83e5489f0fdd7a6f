//! A steady stream of acquisitions: each starts on time, even if earlier ones have not ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use locktopus::Locktopus;

use super::places::{Kind, Place};
use super::tally::Tally;

/// Time between two batches of acquisitions.
const TICK: Duration = Duration::from_millis(10);
/// The limit for acquisitions under way, in seconds of the stream. Beyond it the machine cannot
/// keep up, and the skipped acquisitions are counted.
const BEHIND: u64 = 10;
/// An acquisition from the end of the run may be granted this much later, so that a stall of the
/// machine does not count against the lock.
const GRACE: Duration = Duration::from_secs(1);
/// Locks of each kind and client that no other task wants.
const ALONE: usize = 50;
/// Locks of each client that its own tasks pass on to each other.
const PASSED_ON: usize = 16;
/// Locks of each exclusive kind that all clients want.
const CONTENDED: usize = 4;
/// How long a contended lock is used.
const USED: Duration = Duration::from_millis(1);

/// The locks of the stream.
#[derive(Debug)]
pub(super) struct Places {
    alone: Vec<Vec<Arc<Place>>>,
    passed_on: Vec<Vec<Arc<Place>>>,
    pub(super) contended: Vec<Arc<Place>>,
}

impl Places {
    pub(super) fn new(prefix: &str, clients: usize) -> Self {
        let of = |what: &str, kinds: &[Kind], each: usize| {
            let kinds = kinds.iter().copied();
            let all = kinds.flat_map(|kind| (0..each).map(move |number| (kind, number)));
            all.map(|(kind, number)| Arc::new(Place::new(prefix, what, kind, number)))
                .collect::<Vec<_>>()
        };
        let handed = [Kind::Lock, Kind::Mutex];
        Self {
            alone: (0..clients)
                .map(|client| of(&format!("alone-{client}"), &Kind::ALL, ALONE))
                .collect(),
            passed_on: (0..clients)
                .map(|client| of(&format!("passed-{client}"), &handed, PASSED_ON / 2))
                .collect(),
            contended: of("contended", &Kind::EXCLUSIVE, CONTENDED),
        }
    }

    /// Locks that need a number of permits, and must be deleted.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Arc<Place>> {
        let all = self.alone.iter().flatten();
        all.filter(|place| matches!(place.kind, Kind::Semaphore | Kind::Permits))
    }

    /// The client, lock and hold time of this acquisition. A quarter have a lock to themselves,
    /// seven of ten get it from a task of the same process, and one of twenty competes with the
    /// other client.
    fn choose(&self, number: u64, tick: u64) -> (usize, &Arc<Place>, Duration) {
        let number = usize::try_from(number).unwrap_or(0);
        let tick = usize::try_from(tick).unwrap_or(0);
        let clients = self.alone.len();
        let (client, turn) = (number % clients, number / clients);
        match turn % 20 {
            0..5 => {
                let places = &self.alone[client];
                (client, &places[turn % places.len()], Duration::ZERO)
            }
            5 => {
                let place = &self.contended[turn / 20 % self.contended.len()];
                (client, place, USED)
            }
            // All acquisitions of one batch want the same lock.
            _ => {
                let places = &self.passed_on[client];
                (client, &places[tick % places.len()], Duration::ZERO)
            }
        }
    }
}

/// Starts `rate` acquisitions each second for as long as asked, and waits for the end of all of
/// them. A grant more than [`GRACE`] after the end is not in time. `every` selects the
/// acquisitions: every one, or every second one.
pub(super) async fn run(
    clients: &Arc<[Locktopus]>,
    places: &Arc<Places>,
    tally: &Arc<Tally>,
    rate: u32,
    lasts: Duration,
    every: u64,
) {
    let begun = Instant::now();
    let end = begun + lasts + GRACE;
    let bound = u64::from(rate) * BEHIND;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut next, mut tick) = (0_u64, 0_u64);
    while begun.elapsed() < lasts {
        ticks.tick().await;
        tick += 1;
        let due = (begun.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        while next < due {
            let number = next;
            next += 1;
            let under_way =
                tally.begun.load(Ordering::Relaxed) - tally.ended.load(Ordering::Relaxed);
            if !number.is_multiple_of(every) || under_way >= bound {
                tally.skipped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            tally.begun.fetch_add(1, Ordering::Relaxed);
            let (client, place, hold) = places.choose(number, tick);
            let (clients, place) = (Arc::clone(clients), Arc::clone(place));
            let tally = Arc::clone(tally);
            tokio::spawn(async move {
                tally.use_once(&clients[client], &place, hold, end).await;
                tally.ended.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    // Each of them ends, because its wait has a limit.
    while tally.ended.load(Ordering::Relaxed) < tally.begun.load(Ordering::Relaxed) {
        tokio::time::sleep(TICK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case of a machine or lock that serves less than is started: the rest is served after the
    /// stream has ended.
    #[tokio::test]
    async fn what_is_served_after_the_end_is_not_in_time() {
        let locks = locktopus::connect("memory:").await.unwrap();
        let places = Arc::new(Places::new("soak", 1));
        let tally = Arc::new(Tally::new().unwrap());
        for place in places.counted() {
            let name = place.name.as_str();
            let semaphore = match place.kind {
                Kind::Permits => locks.permit_semaphore(name),
                _ => locks.semaphore(name),
            };
            semaphore.initialise(1).await.unwrap();
        }
        let mut held = Vec::new();
        for place in &places.passed_on[0] {
            held.push(place.take(&locks).await.unwrap());
        }
        let lasts = Duration::from_secs(1);
        let over = tokio::time::Instant::now() + lasts + GRACE;
        let clients = Arc::from([locks]);
        let giving = async {
            tokio::time::sleep_until(over + lasts / 10).await;
            for guard in held {
                guard.release().await.unwrap();
            }
        };
        tokio::join!(run(&clients, &places, &tally, 200, lasts, 1), giving);
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!((of(&tally.errors), tally.examples()), (0, [].into()));
        assert_eq!(of(&tally.granted), of(&tally.begun));
        // Seven of ten waited for the locks that were released after the end.
        assert!(of(&tally.in_time) > 0 && of(&tally.in_time) * 10 <= of(&tally.granted) * 4);
    }

    #[test]
    fn every_sort_of_lock_is_wanted_in_its_share() {
        let places = Places::new("soak", 2);
        let mut shares = [0; 3];
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..40_000 {
            let (client, place, hold) = places.choose(number, number / 100);
            let sort = ["alone-", "contended-", "passed-"]
                .iter()
                .position(|sort| place.name.contains(sort));
            shares[sort.unwrap()] += 1;
            assert_eq!(hold.is_zero(), sort != Some(1));
            kinds.insert(place.name.split('-').nth(1).unwrap().len() + client);
            kinds.insert(1_000 + place.kind as usize);
        }
        assert_eq!(shares, [10_000, 2_000, 28_000]);
        assert_eq!(kinds.range(1_000..).count(), Kind::ALL.len());
    }
}
