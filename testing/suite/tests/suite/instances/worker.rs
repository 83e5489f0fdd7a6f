//! An instance: it prints to standard output what it starts, each step, and what ended.

use std::env;
use std::time::{Duration, SystemTime};

use locktopus::{FencingToken, Job, LeaderElection};

use crate::instances::LEASE;

const STEP: Duration = Duration::from_millis(10);

/// The period of the job. A run takes a third of it.
const PERIOD: Duration = Duration::from_millis(300);

/// Work that reports when it is dropped or done.
struct Work {
    token: FencingToken,
    run: u128,
}

impl Work {
    fn begin(word: &str, token: Option<FencingToken>, run: u128) -> Self {
        let token = token.unwrap();
        let work = Self { token, run };
        work.say(word);
        work
    }

    fn say(&self, word: &str) {
        println!("\n@ {word} {} {} {}", self.token, self.run, micros());
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.say("ended");
    }
}

pub(crate) fn work() {
    let (Ok(url), Ok(name), Ok(role)) = (
        env::var("INSTANCE_URL"),
        env::var("INSTANCE_NAME"),
        env::var("INSTANCE_ROLE"),
    ) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let locks = crate::common::connect(&url).await;
        println!("\n@ up 0 0 {}", micros());
        if role == "leader" {
            let election = LeaderElection::new(&locks, name).renewed_lease(LEASE);
            let led = election.run(|lease| async move {
                let work = Work::begin("lead", lease.token(), 0);
                loop {
                    tokio::time::sleep(STEP).await;
                    work.say("step");
                }
            });
            led.await.unwrap()
        } else {
            let job = Job::new(&locks, name).every(PERIOD);
            let ran = job.renewed_lease(LEASE).run(|tick| async move {
                let work = Work::begin("run", tick.token(), since_epoch(tick.scheduled_at()));
                let begun = std::time::Instant::now();
                while begun.elapsed() < PERIOD / 3 {
                    tokio::time::sleep(STEP).await;
                    work.say("step");
                }
            });
            ran.await.unwrap();
        }
    });
}

fn micros() -> u128 {
    since_epoch(SystemTime::now())
}

fn since_epoch(time: SystemTime) -> u128 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_micros()
}
