//! Every public asynchronous function, dropped at every point, under every kind of fault.

#[path = "cancel_common/mod.rs"]
mod common;

use std::time::Duration;

use common::{FLAVOURS, PROFILES, competitor, held, request};
use locktopus_conformance::cancel::{Sweep, World, cut_after};
use locktopus_core::{CancellationToken, Owner, WaitStrategy, WakeUps as _};

const MOMENT: Duration = Duration::from_millis(30);

/// Sweeps a scenario over all faults and flavours, and prints the number of points.
#[expect(
    clippy::future_not_send,
    reason = "scenarios run where they are written"
)]
async fn sweep(
    name: &str,
    patience: Option<Duration>,
    scenario: impl AsyncFn(&World, usize, &str) -> Option<()>,
) {
    let mut points = 0;
    for (profile, faults) in PROFILES {
        for flavour in FLAVOURS {
            let mut sweep = Sweep::new(format!("{name} of a {flavour} ({profile})"), faults());
            if let Some(patience) = patience {
                sweep = sweep.patience(patience);
            }
            points += sweep
                .run(async |world, polls| scenario(world, polls, flavour).await)
                .await;
        }
    }
    println!("{name}: cut at {points} points, nothing left");
}

#[tokio::test(start_paused = true)]
async fn acquire() {
    sweep("acquire", None, async |world, polls, flavour| {
        let request = request(&world.locks, flavour);
        cut_after(polls, request.acquire()).await.map(drop)
    })
    .await;
}

/// Permits taken by a dropped future come back long before their period returns them.
#[tokio::test(start_paused = true)]
async fn spend() {
    for ((profile, faults), waits) in PROFILES.into_iter().zip([false, true].into_iter().cycle()) {
        let sweep = Sweep::new(format!("a rate limiter ({profile})"), faults());
        let points = sweep.run(async |world, polls| {
            let (other, per) = (world.other.rate_limiter("job"), MOMENT * 1_000_000);
            other.initialise(1, per).await.unwrap();
            if waits {
                other.acquire().await.unwrap();
            }
            let competitor = async {
                tokio::time::sleep(MOMENT).await;
                other.set_rate(1 + u32::from(waits), per).await.unwrap();
            };
            let limiter = world.locks.rate_limiter("job");
            let (done, ()) = tokio::join!(cut_after(polls, limiter.acquire()), competitor);
            while done.is_none() && other.available().await.unwrap() != Some(1) {
                tokio::time::sleep(MOMENT).await;
            }
            other.delete().await.unwrap();
            done.map(drop)
        });
        println!("{profile}: cut at {} points, nothing left", points.await);
    }
}

#[tokio::test(start_paused = true)]
async fn awaited_request() {
    sweep("a request", None, async |world, polls, flavour| {
        let request = request(&world.locks, flavour);
        cut_after(polls, request.into_future()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn acquire_contended() {
    sweep(
        "acquire (contended)",
        None,
        async |world, polls, flavour| {
            let competitor = competitor(world, flavour, MOMENT).await;
            let request = request(&world.locks, flavour);
            let done = cut_after(polls, request.acquire()).await.map(drop);
            competitor.await.unwrap();
            done
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn acquire_contended_polling() {
    let poll = WaitStrategy::Poll {
        min: Duration::from_millis(2),
        max: Duration::from_millis(4),
    };
    sweep("acquire (polling)", None, async |world, polls, flavour| {
        let competitor = competitor(world, flavour, MOMENT).await;
        let request = request(&world.locks, flavour).strategy(poll);
        let done = cut_after(polls, request.acquire()).await.map(drop);
        competitor.await.unwrap();
        done
    })
    .await;
}

/// A lease that is kept is acquired again, asked back by another owner, and blocks a request with
/// other terms.
#[tokio::test(start_paused = true)]
async fn acquire_what_is_kept() {
    sweep("acquire (kept)", None, async |world, polls, flavour| {
        let keep = if flavour == FLAVOURS[2] {
            Duration::ZERO
        } else {
            MOMENT
        };
        let request = request(&world.locks, flavour).lease_cache(keep);
        let rounds = async {
            for round in 0..4 {
                let request = match round {
                    2 => request.clone().fixed_lease(MOMENT * 100),
                    _ => request.clone(),
                };
                if let Ok(guard) = request.acquire().await {
                    let _ = guard.release().await;
                }
            }
        };
        let done = cut_after(polls, rounds).await;
        let guard = common::request(&world.other, flavour).acquire().await;
        guard.unwrap().release().await.unwrap();
        done
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn acquire_that_times_out() {
    sweep(
        "acquire (times out)",
        None,
        async |world, polls, flavour| {
            let competitor = competitor(world, flavour, MOMENT * 4).await;
            let request = request(&world.locks, flavour).wait_at_most(MOMENT);
            let done = cut_after(polls, request.acquire()).await.map(drop);
            competitor.await.unwrap();
            done
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn acquire_that_is_cancelled() {
    sweep(
        "acquire (cancelled)",
        None,
        async |world, polls, flavour| {
            let competitor = competitor(world, flavour, MOMENT * 4).await;
            let token = CancellationToken::new();
            let cancel = token.clone();
            let canceller = tokio::spawn(async move {
                tokio::time::sleep(MOMENT).await;
                cancel.cancel();
            });
            let request = request(&world.locks, flavour).cancel_on(token);
            let done = cut_after(polls, request.acquire()).await.map(drop);
            canceller.await.unwrap();
            competitor.await.unwrap();
            done
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn acquire_by_an_owner() {
    sweep("acquire (owner)", None, async |world, polls, flavour| {
        // Another task of the same owner acquires the lock and holds it for a while.
        let owner = Owner::new();
        let first = request(&world.locks, flavour).owner(&owner);
        let first = tokio::spawn(async move {
            if let Ok(guard) = first.acquire().await {
                tokio::time::sleep(MOMENT).await;
                drop(guard);
            }
        });
        tokio::task::yield_now().await;
        let request = request(&world.locks, flavour).owner(&owner);
        let done = cut_after(polls, request.acquire()).await.map(drop);
        first.await.unwrap();
        done
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn try_acquire() {
    sweep("try_acquire", None, async |world, polls, flavour| {
        let request = request(&world.locks, flavour);
        cut_after(polls, request.try_acquire()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn try_acquire_contended() {
    sweep(
        "try_acquire (contended)",
        None,
        async |world, polls, flavour| {
            let competitor = competitor(world, flavour, MOMENT).await;
            let request = request(&world.locks, flavour);
            let done = cut_after(polls, request.try_acquire()).await.map(drop);
            competitor.await.unwrap();
            done
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn run() {
    sweep("run", None, async |world, polls, flavour| {
        let competitor = competitor(world, flavour, MOMENT / 3).await;
        let work = request(&world.locks, flavour).run(|lease| async move {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            lease.ensure_valid().is_ok()
        });
        let done = cut_after(polls, work).await.map(drop);
        competitor.await.unwrap();
        done
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_that_loses_its_lock() {
    sweep("run (lost)", None, async |world, polls, flavour| {
        let request = request(&world.locks, flavour).fixed_lease(MOMENT * 10);
        let work = request.run(|_| std::future::pending::<()>());
        cut_after(polls, work).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn release() {
    sweep("release", None, async |world, polls, flavour| {
        let guard = held(world, flavour).await;
        cut_after(polls, guard.release()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn extend() {
    sweep("extend", None, async |world, polls, flavour| {
        let guard = held(world, flavour).await;
        let done = cut_after(polls, guard.extend(Duration::from_secs(60))).await;
        drop(guard);
        done.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn lost() {
    sweep("lost", None, async |world, polls, flavour| {
        let guard = held(world, flavour).await;
        let lease = guard.lease();
        // A second poll would never be woken.
        assert!(cut_after(polls.min(1), guard.lost()).await.is_none());
        drop(guard);
        cut_after(polls, lease.lost()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn adopt() {
    // A dropped adoption may have extended the lease, which then expires.
    let patience = Some(Duration::from_secs(70));
    sweep("adopt", patience, async |world, polls, flavour| {
        let ticket = held(world, flavour).await.into_ticket().unwrap();
        let request = request(&world.locks, flavour);
        cut_after(polls, request.adopt(&ticket)).await.map(drop)
    })
    .await;
}

/// A writer's ticket: its adopter must be able to read, and learns that it can.
#[tokio::test(start_paused = true)]
async fn adopt_to_write() {
    let patience = Duration::from_secs(70);
    for (profile, faults) in PROFILES {
        for units in 1..=4 {
            let name = format!("adopt to write ({profile}, {units} units of budget)");
            let sweep = Sweep::new(name, faults()).patience(patience);
            sweep
                .run(async |world, polls| {
                    let write = || world.locks.rw_lock("job").write();
                    let guard = loop {
                        if let Ok(guard) = write().acquire().await {
                            break guard;
                        }
                    };
                    let ticket = guard.into_ticket().unwrap();
                    let adopted = cut_after(polls, write().adopt(&ticket)).on_budget(units);
                    adopted.await.map(drop)
                })
                .await;
        }
    }
}

/// Reads while writing and continues as a reader, even if the writer is evicted meanwhile.
#[tokio::test(start_paused = true)]
async fn read_while_writing() {
    for (profile, faults) in PROFILES {
        for (downgrade, evicted) in [(false, false), (false, true), (true, false), (true, true)] {
            let name = format!("read ({profile}, downgrade: {downgrade}, evicted: {evicted})");
            let sweep = Sweep::new(name, faults()).patience(Duration::from_secs(8));
            sweep
                .run(async |world, polls| {
                    let lock = world.locks.rw_lock("job");
                    let writing = loop {
                        if let Ok(guard) = lock.write().acquire().await {
                            break guard;
                        }
                    };
                    let eviction = tokio::spawn(async move {
                        if evicted {
                            tokio::task::yield_now().await;
                            let _ = lock.force_release("the sweep wants it").await;
                        }
                    });
                    let done = if downgrade {
                        cut_after(polls, writing.downgrade()).await.map(drop)
                    } else {
                        let done = cut_after(polls, writing.read()).await.map(drop);
                        drop(writing);
                        done
                    };
                    eviction.await.unwrap();
                    done
                })
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inspect() {
    sweep("inspect", None, async |world, polls, flavour| {
        let request = request(&world.locks, flavour);
        cut_after(polls, request.inspect()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn diagnose() {
    sweep("diagnose", None, async |world, polls, _| {
        cut_after(polls, world.locks.diagnose()).await.map(drop)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_hints() {
    sweep("WakeStream::next", None, async |world, polls, flavour| {
        let target = common::target(flavour);
        let far = tokio::time::Instant::now() + Duration::from_secs(9);
        let guard = held(world, flavour).await;
        let mut hints = world.store.subscribe(&target, far).await.unwrap();
        let done = cut_after(polls.min(1), hints.next()).await;
        assert!(done.is_none(), "nobody released");
        drop(guard);
        let next = cut_after(polls, hints.next()).await;
        if next.is_none() && flavour != "single-key mutex" {
            // A hint that arrives during or after a dropped call is kept for the next call.
            hints.next().await;
        }
        next.map(drop)
    })
    .await;
}

/// The documented exception: a dropped shutdown leaves the backend open, and a second one finishes
/// the job.
#[tokio::test(start_paused = true)]
async fn shutdown() {
    sweep("shutdown", None, async |world, polls, flavour| {
        let guard = held(world, flavour).await;
        let waiter = tokio::spawn(request(&world.locks, flavour).into_future());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let done = cut_after(polls, world.locks.shutdown(MOMENT * 20)).await;
        if done.is_none() {
            let _ = world.locks.shutdown(MOMENT * 20).await;
        }
        let refused = request(&world.locks, flavour).try_acquire().await;
        assert!(refused.is_err(), "acquired after a shutdown");
        assert!(
            waiter.await.unwrap().is_err(),
            "a waiter survived a shutdown"
        );
        drop(guard);
        done.map(drop)
    })
    .await;
}
