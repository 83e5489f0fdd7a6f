//! Periodic jobs: each run begins once, in order, and missed runs are caught up as requested.
//!
//! Times are real, because runs are due by the wall clock. Most are past when the job starts.

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use common::{Fate, Scripted, extremes, until};
use locktopus_core::{BackendErrorKind, CancellationToken, LockError, Locktopus};
use locktopus_recipes::{CatchUp, Job, ScheduledJob, Tick};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const SOON: Duration = Duration::from_secs(20);
const EARLY: Duration = Duration::from_secs(3_600);

/// This many seconds ago, to the millisecond.
fn ago(seconds: u64) -> SystemTime {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let millis = u64::try_from(since.as_millis()).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis) - Duration::from_secs(seconds)
}

fn job(locks: &Locktopus, times: &[SystemTime]) -> ScheduledJob {
    let job = Job::new(locks, "j").at_times(times.to_vec());
    job.tolerance(Duration::from_secs(2))
}

/// The runs of a job whose times are all past, in order.
async fn runs(job: ScheduledJob) -> Vec<Tick> {
    let mut runs = Vec::new();
    let all = job.run(|tick| {
        runs.push(tick);
        std::future::ready(())
    });
    timeout(SOON, all).await.expect("the job ends").unwrap();
    runs
}

async fn run_times(job: ScheduledJob) -> Vec<SystemTime> {
    runs(job).await.iter().map(Tick::scheduled_at).collect()
}

type Running = JoinHandle<Result<(), LockError>>;
type Ticks = Arc<Mutex<Vec<Tick>>>;

/// Runs it in the background. The first run never ends.
fn hang(job: ScheduledJob) -> (Running, Ticks) {
    let ticks = Ticks::default();
    let seen = Arc::clone(&ticks);
    let running = tokio::spawn(async move {
        job.run(|tick| {
            let mut seen = seen.lock().unwrap();
            seen.push(tick);
            let first = seen.len() == 1;
            async move {
                if first {
                    std::future::pending().await
                }
            }
        })
        .await
    });
    (running, ticks)
}

#[tokio::test]
async fn three_instances_begin_each_run_once_and_in_order() {
    let backend = Scripted::new();
    let (ticks, stop) = (Arc::<Mutex<Vec<Tick>>>::default(), CancellationToken::new());
    let instances: Vec<_> = [backend.locks(), backend.other(), backend.other()]
        .iter()
        .map(|locks| {
            let job = Job::new(locks, "j").every(Duration::from_millis(150));
            let job = job.cancel_on(stop.clone());
            let ticks = Arc::clone(&ticks);
            tokio::spawn(job.run(move |tick| {
                ticks.lock().unwrap().push(tick);
                sleep(Duration::from_millis(20))
            }))
        })
        .collect();
    until("eight runs", || ticks.lock().unwrap().len() >= 8).await;
    stop.cancel();
    for instance in instances {
        let ended = instance.await.unwrap();
        assert!(matches!(ended, Err(LockError::Cancelled { .. })));
    }
    let ticks = ticks.lock().unwrap();
    assert!(
        ticks.is_sorted_by(|a, b| a.scheduled_at() < b.scheduled_at() && a.token() < b.token()),
        "{ticks:?}"
    );
}

#[tokio::test]
async fn what_was_missed_is_skipped_run_once_or_all() {
    let locks = Scripted::new().locks();
    // A new job has missed nothing, under any policy.
    let first = [ago(50), ago(40)];
    let all = CatchUp::All { at_most: 10 };
    for policy in [CatchUp::Skip, CatchUp::Once, all] {
        assert_eq!(run_times(job(&locks, &first).catch_up(policy)).await, []);
    }
    let missed = [ago(39), ago(38), ago(37), ago(36)];
    let missed = |count: usize| [&first, &missed[..count]].concat();
    assert_eq!(run_times(job(&locks, &missed(2))).await, []);
    let times = missed(3);
    let once = runs(job(&locks, &times).catch_up(CatchUp::Once)).await;
    assert_eq!(once.len(), 1, "{once:?}");
    assert_eq!(once[0].scheduled_at(), times[4]);
    assert!(once[0].was_missed());
    // A run that has begun does not begin again.
    assert_eq!(run_times(job(&locks, &times).catch_up(all)).await, []);

    let later: Vec<_> = (0..5).map(|n| ago(30 - n)).collect();
    let times = [times, later].concat();
    let newest = CatchUp::All { at_most: 3 };
    let caught_up = runs(job(&locks, &times).catch_up(newest)).await;
    let at: Vec<_> = caught_up.iter().map(Tick::scheduled_at).collect();
    assert_eq!(at, times[times.len() - 3..]);
    assert!(caught_up.is_sorted_by(|a, b| a.token() < b.token()));
    let times = [times, vec![ago(20), ago(19)]].concat();
    let caught_up = run_times(job(&locks, &times).catch_up(all)).await;
    assert_eq!(caught_up, times[times.len() - 2..]);
}

/// By the instance that begins the next run, or finds the last one too late.
#[tokio::test]
async fn what_no_instance_began_is_told_once() {
    let (backend, told) = (Scripted::new(), Arc::<Mutex<Vec<_>>>::default());
    let telling = |job: ScheduledJob| {
        let told = Arc::clone(&told);
        job.on_missed(move |missed| told.lock().unwrap().push((missed.count, missed.since)))
    };
    let times: Vec<_> = [50, 40, 39, 38, 30, 29].map(ago).to_vec();
    let first = job(&backend.locks(), &times[..1]).tolerance(EARLY);
    assert_eq!(run_times(first).await, times[..1]);
    let next = job(&backend.other(), &times[..4]).catch_up(CatchUp::Once);
    assert_eq!(run_times(telling(next)).await, times[3..4]);
    let soon = ago(0) + Duration::from_millis(600);
    let late = telling(job(&backend.locks(), &[&times[..], &[soon]].concat()));
    assert_eq!(run_times(late).await, [soon]);
    let expected = [(2, times[1]), (2, times[4])];
    assert_eq!(*told.lock().unwrap(), expected);

    // After an outage, in the same instance.
    let (outage, stop) = (Scripted::new(), CancellationToken::new());
    let often = Job::new(&outage.locks(), "j").every(Duration::from_millis(100));
    let often = often.cancel_on(stop.clone());
    let often = often.on_missed(move |_| stop.cancel());
    let ran = often.run(|_| {
        outage.next("inspect", [Fate::Refuse; 4]);
        std::future::ready(())
    });
    assert!(timeout(SOON, ran).await.is_ok(), "they are told");
}

/// It may have begun and been forgotten since.
#[tokio::test]
async fn a_run_that_was_due_before_what_is_remembered_is_not_begun() {
    let locks = Scripted::new().locks();
    let minute = Duration::from_secs(60);
    let first = [ago(59)];
    let early = job(&locks, &first)
        .tolerance(EARLY)
        .remember_for(minute * 2);
    assert_eq!(run_times(early).await, first);
    let times = [ago(90), ago(62), ago(9)];
    let all = CatchUp::All { at_most: 5 };
    for policy in [CatchUp::Once, all] {
        let forgotten = job(&locks, &times[..2]).catch_up(policy);
        let ran = run_times(forgotten.tolerance(EARLY).remember_for(minute)).await;
        assert_eq!(ran, [], "{policy:?}");
    }
    let newest = job(&locks, &times).catch_up(all).remember_for(minute);
    assert_eq!(run_times(newest).await, times[2..]);
}

/// Instances need not agree on the time: one that reaches it an hour later finds that the run has
/// begun.
#[tokio::test]
async fn an_instance_that_is_late_finds_the_run_begun() {
    let backend = Scripted::new();
    let times = [ago(30)];
    let here = runs(job(&backend.locks(), &times).tolerance(EARLY)).await;
    assert_eq!(here.len(), 1);
    assert!(!here[0].was_missed());
    for policy in [CatchUp::Skip, CatchUp::Once, CatchUp::All { at_most: 3 }] {
        let late = job(&backend.other(), &times).tolerance(EARLY);
        assert_eq!(run_times(late.catch_up(policy)).await, []);
    }
}

#[tokio::test]
async fn a_run_is_ended_when_it_takes_too_long_and_is_not_repeated() {
    let locks = Scripted::new().locks();
    let times = [ago(9), ago(0) + Duration::from_millis(600)];
    let job = job(&locks, &times).tolerance(EARLY);
    let (running, ticks) = hang(job.at_most(Duration::from_millis(100)));
    timeout(SOON, running).await.unwrap().unwrap().unwrap();
    let ticks = ticks.lock().unwrap();
    let at: Vec<_> = ticks.iter().map(Tick::scheduled_at).collect();
    assert_eq!(at, times);
}

#[tokio::test]
async fn the_next_run_is_not_begun_before_at_least_is_over() {
    let locks = Scripted::new().locks();
    let times = [ago(50), ago(40), ago(39)];
    let first = job(&locks, &times[..1]).tolerance(EARLY);
    assert_eq!(run_times(first).await, times[..1]);
    let (least, mut begun) = (Duration::from_millis(300), Vec::new());
    let all = job(&locks, &times).catch_up(CatchUp::All { at_most: 2 });
    let ran = all.at_least(least).run(|_| {
        begun.push(Instant::now());
        std::future::ready(())
    });
    timeout(SOON, ran).await.unwrap().unwrap();
    assert_eq!(begun.len(), 2);
    // The mutex was taken a moment before the run began.
    assert!(begun[1] - begun[0] > least * 9 / 10);
}

#[tokio::test]
async fn a_run_that_loses_its_lock_is_dropped_and_not_repeated() {
    let locks = Scripted::new().locks();
    let times = [ago(9), ago(0) + Duration::from_millis(600)];
    let (running, ticks) = hang(job(&locks, &times).tolerance(EARLY));
    until("the first run", || ticks.lock().unwrap().len() == 1).await;
    locks.mutex("j").force_release("test").await.unwrap();
    timeout(SOON, running).await.unwrap().unwrap().unwrap();
    let ticks = ticks.lock().unwrap();
    assert!(ticks[0].lease().ensure_valid().is_err());
    assert_eq!(ticks.len(), 2);
}

/// An instance waits for another one's earlier run, and does what has become due since.
#[tokio::test]
async fn others_go_on_when_an_instance_goes_away() {
    let backend = Scripted::new();
    let (here, there) = (backend.locks(), backend.other());
    let (running, ticks) = hang(job(&here, &[ago(9)]).tolerance(EARLY));
    until("the first run", || ticks.lock().unwrap().len() == 1).await;
    let times = [ago(9), ago(8)];
    let next = tokio::spawn(run_times(job(&there, &times).catch_up(CatchUp::Once)));
    let probe = backend.other();
    let watch = async {
        while probe.mutex("j").inspect().await.unwrap().waiters.is_empty() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(SOON, watch).await.expect("the other waits");
    assert!(!next.is_finished());
    running.abort();
    let next = timeout(SOON, next).await.unwrap().unwrap();
    assert_eq!(next, times[1..]);
}

/// A program that caches its leases does not delay others' next run.
#[tokio::test]
async fn the_mutex_is_free_after_a_run() {
    let backend = Scripted::new();
    let keeping = backend.builder().lease_cache(SOON / 4).build().unwrap();
    assert_eq!(runs(job(&keeping, &[ago(1)])).await.len(), 1);
    let state = backend.other().mutex("j").inspect().await.unwrap();
    assert_eq!(state.holder(), None);
}

#[tokio::test]
async fn errors_that_pass_are_waited_out_and_others_end_the_job() {
    let backend = Scripted::new();
    backend.next("inspect", [Fate::Refuse; 2]);
    backend.next("attempt", [Fate::Refuse]);
    let times = [ago(9)];
    let ran = run_times(job(&backend.locks(), &times).tolerance(EARLY)).await;
    assert_eq!(ran, times);

    // The note of the run: the error names the job.
    backend.next("attempt", [Fate::Pass, Fate::Deny]);
    let job = job(&backend.locks(), &[ago(1)]).tolerance(EARLY);
    let ended = job.run(|_| std::future::ready(())).await;
    let Err(LockError::Backend { source, target, .. }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(source.kind(), BackendErrorKind::Denied);
    assert_eq!(target.name().as_str(), "j");
}

/// The note may have been written. Then the run counts as begun, because it must not begin twice.
#[tokio::test]
async fn a_run_whose_note_got_no_answer_is_not_begun_twice() {
    let backend = Scripted::new();
    // The job's mutex, then the note.
    backend.next("attempt", [Fate::Pass, Fate::LoseReply]);
    let times = [ago(9)];
    let ran = run_times(job(&backend.locks(), &times).tolerance(EARLY)).await;
    assert!(ran.len() <= 1, "{ran:?}");
    let again = run_times(job(&backend.other(), &times).tolerance(EARLY)).await;
    assert_eq!(again, []);
}

#[tokio::test]
async fn shutdown_ends_a_job_that_waits_for_its_time() {
    let locks = Scripted::new().locks();
    let job = job(&locks, &[ago(0) + EARLY]);
    let running = tokio::spawn(job.run(|_| std::future::ready(())));
    let _ = locks.shutdown(SOON).await;
    let ended = timeout(SOON, running).await.unwrap().unwrap();
    assert!(matches!(ended, Err(LockError::ShutDown)), "{ended:?}");
}

/// Some cron libraries repeat a time for ever if daylight saving skips it.
#[tokio::test]
async fn times_that_stop_growing_end_the_job_with_an_error() {
    let locks = Scripted::new().locks();
    let soon = SystemTime::now() + Duration::from_millis(50);
    for (good, forever) in [(ago(5), ago(5)), (ago(4), ago(5)), (ago(5), soon)] {
        let times = std::iter::once(good).chain(std::iter::repeat(forever));
        let job = Job::new(&locks, "j").at_times(times);
        let ended = timeout(SOON, job.run(|_| std::future::ready(()))).await;
        let ended = ended.expect("it ends");
        assert!(matches!(ended, Err(LockError::Option(_))), "{ended:?}");
    }
}

/// With one thread, the job can be cancelled only if it yields while it skips past times.
#[tokio::test]
async fn a_job_with_endless_old_times_can_be_cancelled() {
    let stop = CancellationToken::new();
    let old = (1_u64..).map(|n| SystemTime::UNIX_EPOCH + Duration::from_nanos(n));
    let job = Job::new(&Scripted::new().locks(), "j").at_times(old);
    let job = job.cancel_on(stop.clone());
    let running = tokio::spawn(job.run(|_| std::future::ready(())));
    tokio::task::yield_now().await;
    stop.cancel();
    let ended = timeout(SOON, running).await.unwrap().unwrap();
    assert!(
        matches!(ended, Err(LockError::Cancelled { .. })),
        "{ended:?}"
    );
}

#[tokio::test]
async fn impossible_options_are_refused_before_anything_is_sent() {
    let backend = Scripted::new();
    let locks = backend.locks();
    let minute = || Job::new(&locks, "j").every(EARLY);
    let often = Job::new(&locks, "j").every(Duration::from_millis(1));
    let cases = [
        often,
        minute().catch_up(CatchUp::All { at_most: 0 }),
        minute().catch_up(CatchUp::All { at_most: 101 }),
        minute().remember_for(Duration::from_secs(1)),
        minute().at_least(EARLY).at_most(EARLY / 2),
    ];
    for job in cases {
        let ended = job.run(|_| std::future::ready(())).await;
        assert!(matches!(ended, Err(LockError::Option(_))), "{ended:?}");
    }
    assert!(backend.calls("inspect").is_empty());
}

/// An answer or an error, never a panic.
#[tokio::test(start_paused = true)]
async fn every_setting_of_a_job() {
    let settings: [fn(ScheduledJob, Duration) -> ScheduledJob; 4] = [
        ScheduledJob::at_least,
        ScheduledJob::at_most,
        ScheduledJob::tolerance,
        ScheduledJob::remember_for,
    ];
    for duration in extremes() {
        let locks = Scripted::new().locks();
        let hourly = settings.iter().enumerate().map(|(name, set)| {
            let job = Job::new(&locks, name.to_string()).every(EARLY);
            set(job, duration)
        });
        for job in hourly.chain([Job::new(&locks, "every").every(duration)]) {
            println!("{job:?}");
            let _ = timeout(SOON / 20, job.run(|_| async {})).await;
        }
    }
}
