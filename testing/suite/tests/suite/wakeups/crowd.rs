//! Many tasks want one lock, and only messages wake them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use locktopus::Locktopus;
use locktopus_servers::topology::Deployment;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::common::{LONG, ONLY_MESSAGES, close, locks_apart, unique};

const TASKS: usize = 100;

pub(crate) async fn on_one_lock(
    place: Arc<Deployment>,
    clients: &'static [&'static str],
) -> String {
    let name = unique("crowd");
    let mut all = Vec::new();
    for client in clients {
        all.push(locks_apart(&place, client).await);
    }
    let (inside, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for number in 0..TASKS {
        let entering = enter(&all[number % all.len()], &name, &inside, &last);
        tasks.spawn(entering);
    }
    let served = timeout(LONG, async {
        let mut served = 0;
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
            served += 1;
        }
        served
    });
    assert_eq!(served.await.expect("everybody is served"), TASKS);
    let took = begun.elapsed();
    for locks in all {
        close(locks).await;
    }
    format!("{TASKS} tasks one after the other in {took:.2?}")
}

fn enter(
    locks: &Locktopus,
    name: &str,
    inside: &Arc<AtomicUsize>,
    last: &Arc<AtomicU64>,
) -> impl Future<Output = ()> + Send + 'static {
    let request = locks.lock(name).strategy(ONLY_MESSAGES);
    let (inside, last) = (Arc::clone(inside), Arc::clone(last));
    async move {
        let guard = request.acquire().await.unwrap();
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two inside");
        let token = guard.token().unwrap().get();
        assert!(last.swap(token, Ordering::SeqCst) < token, "tokens grow");
        // Gives others a chance to enter by mistake.
        tokio::task::yield_now().await;
        inside.fetch_sub(1, Ordering::SeqCst);
        guard.release().await.unwrap();
    }
}
