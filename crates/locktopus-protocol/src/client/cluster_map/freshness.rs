//! When a client asks for a new slot table: on request and periodically.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::ClusterMap;
use crate::client::backoff::{Backoff, SETTLED};

/// Pause before a refresh when slots are known to have moved: they rarely move one at a time.
const AFTER_REDIRECTS: Duration = Duration::from_millis(20);

/// What a caller that needs a fresh table can expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No refresh is requested.
    Idle,
    /// A refresh is requested or under way.
    Due,
    /// A refresh has just ended, and the next one starts after a pause.
    Resting,
    /// There are no more refreshes.
    Closed,
}

impl<N: Send + Sync> ClusterMap<N> {
    /// Requests a refresh.
    pub fn mark_stale(&self) {
        self.phase.send_if_modified(|phase| {
            let idle = *phase == Phase::Idle;
            *phase = if idle { Phase::Due } else { *phase };
            idle
        });
        self.wanted.notify_one();
    }

    /// Waits for the refresh that is requested or under way. In the pause after a refresh it does
    /// not wait: the table is as fresh as possible, and callers retry.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn fresh(&self) {
        let mut phase = self.phase.subscribe();
        let _map_is_here = phase.wait_for(|phase| *phase != Phase::Due).await;
    }

    /// Calls `refresh` on request and, after `period`, without one, until [`close`](Self::close).
    /// `refresh` returns whether the table changed. The pauses between refreshes grow while they
    /// find nothing new, however many are requested. A `MOVED` answer ends a pause.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::{future::ready, time::Duration};
    /// use locktopus_protocol::{ClientError, HostPort, slot_map::{ClusterMap, SlotRange}};
    ///
    /// let seed = HostPort { host: "10.0.0.1".to_owned(), port: 7000 };
    /// let map = ClusterMap::new(vec![seed], |address| address.port);
    /// let nobody = || ClientError::NotSent("no node is known".to_owned());
    /// let ask = |primary| ready(Ok(vec![SlotRange { first: 0, last: 100, primary }]));
    /// let period = || Duration::from_secs(30);
    /// let client = async {
    ///     map.mark_stale();
    ///     map.fresh().await;
    ///     assert_eq!(map.table().owner(100).map(|node| **node), Some(7000));
    ///     map.close();
    ///     assert!(map.is_closed());
    /// };
    /// tokio::join!(client, map.keep_fresh(period, || map.refresh(nobody(), ask)));
    /// # }
    /// ```
    pub async fn keep_fresh<E: fmt::Display, R>(
        &self,
        period: impl Fn() -> Duration,
        refresh: impl Fn() -> R,
    ) where
        R: Future<Output = Result<bool, E>>,
    {
        let mut phase = self.phase.subscribe();
        let closed = async { drop(phase.wait_for(|phase| *phase == Phase::Closed).await) };
        tokio::select! {
            () = closed => {}
            () = self.refresh_again_and_again(period, refresh) => {}
        }
    }

    async fn refresh_again_and_again<E: fmt::Display, R>(
        &self,
        period: impl Fn() -> Duration,
        refresh: impl Fn() -> R,
    ) where
        R: Future<Output = Result<bool, E>>,
    {
        let mut backoff = Backoff::new();
        loop {
            let quiet = Instant::now();
            let _wanted = timeout(period(), self.wanted.notified()).await;
            self.enter(Phase::Due);
            match refresh().await {
                Ok(differs) if differs || quiet.elapsed() >= SETTLED => backoff.reset(),
                Ok(_) => {}
                Err(why) => tracing::debug!(%why, "the slot table could not be refreshed"),
            }
            self.enter(Phase::Resting);
            let redirected = timeout(backoff.pause(), self.redirected.notified()).await;
            if redirected.is_ok() {
                sleep(AFTER_REDIRECTS).await;
            }
            self.enter(Phase::Idle);
        }
    }

    fn enter(&self, next: Phase) {
        self.phase.send_if_modified(|phase| {
            let open = *phase != Phase::Closed;
            *phase = if open { next } else { *phase };
            open
        });
    }

    /// Ends the refreshes. From now on nothing waits for one.
    pub fn close(&self) {
        self.phase.send_replace(Phase::Closed);
    }

    /// Whether the client was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.phase.borrow() == Phase::Closed
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use super::*;
    use crate::HostPort;
    use crate::client::slot_map::Redirect;

    const MS: Duration = Duration::from_millis(1);

    /// Keeps a map fresh for as long as `client` runs. Returns when each refresh was made. They
    /// find something new while `news` says so.
    #[expect(clippy::future_not_send, reason = "it stays on the thread of its test")]
    async fn refreshes(news: &Cell<bool>, client: impl AsyncFnOnce(&ClusterMap<u16>)) -> Vec<u128> {
        let map = ClusterMap::new(Vec::new(), |address| address.port);
        let (begin, times) = (Instant::now(), RefCell::new(Vec::new()));
        let refresh = || {
            times.borrow_mut().push(begin.elapsed().as_millis());
            ready(Ok::<_, &str>(news.get()))
        };
        tokio::select! {
            biased;
            () = map.keep_fresh(|| MS * 30_000, refresh) => {}
            () = client(&map) => {}
        }
        times.into_inner()
    }

    async fn keep_asking(map: &ClusterMap<u16>, until: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < until {
            map.mark_stale();
            sleep(MS).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_refreshed_on_request_and_periodically() {
        let news = Cell::new(false);
        let times = refreshes(&news, async |map| {
            sleep(MS * 100).await;
            map.mark_stale();
            sleep(MS * 70_000).await;
        });
        assert_eq!(times.await.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_there_is_something_new_or_quiet() {
        let news = Cell::new(false);
        let times = refreshes(&news, async |map| {
            keep_asking(map, MS * 10_000).await;
            news.set(true);
            keep_asking(map, MS * 3000).await;
        });
        let times = times.await;
        let before = times.iter().filter(|at| **at < 10_000).count();
        // With pauses of 10 to 20 ms, then of one to two seconds.
        assert!((10..25).contains(&before), "{times:?}");
        assert!(times.len() - before > 30, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_redirect_ends_a_pause() {
        let news = Cell::new(false);
        let times = refreshes(&news, async |map| {
            keep_asking(map, MS * 10_000).await;
            let node = HostPort {
                host: "a".to_owned(),
                port: 1,
            };
            map.moved(&Redirect { slot: 7, node });
            let moved = Instant::now();
            map.fresh().await;
            assert_eq!(moved.elapsed(), Duration::ZERO, "nothing waits in a pause");
            sleep(MS * 25).await;
        });
        let times = times.await;
        assert!(times.last().unwrap().abs_diff(10_020) < 3, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_released_by_the_refresh_or_the_end() {
        let map = ClusterMap::new(Vec::new(), |address| address.port);
        map.fresh().await;
        let slow = async || {
            sleep(MS * 10).await;
            Ok::<_, &str>(true)
        };
        let begin = Instant::now();
        let client = async {
            map.mark_stale();
            map.fresh().await;
            assert_eq!(begin.elapsed(), MS * 10);
            sleep(MS * 100).await;
            map.mark_stale();
            tokio::join!(map.fresh(), async { map.close() });
            assert_eq!(begin.elapsed(), MS * 110);
            map.mark_stale();
            map.fresh().await;
        };
        tokio::join!(client, map.keep_fresh(|| MS * 30_000, slow));
        assert_eq!(begin.elapsed(), MS * 110);
    }
}
