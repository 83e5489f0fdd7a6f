//! Scripted sentinels, in paused time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::*;
use crate::client::options::{ConnectOptions, Servers};

/// The behaviour of a sentinel.
#[derive(Debug, Clone)]
enum Script {
    /// Names this port with this epoch, after this delay.
    Says(u16, Option<u64>, Duration),
    Refuses,
    Hangs,
}

use Script::{Hangs, Refuses, Says};

const AT_ONCE: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Default)]
struct Stage {
    scripts: Arc<Mutex<HashMap<u16, Script>>>,
    announced: Arc<Notify>,
}

#[derive(Debug)]
struct Line {
    stage: Stage,
    sentinel: u16,
}

impl Stage {
    fn set(&self, sentinel: u16, script: Script) {
        self.scripts.lock().unwrap().insert(sentinel, script);
    }

    fn script(&self, sentinel: u16) -> Script {
        self.scripts.lock().unwrap()[&sentinel].clone()
    }
}

#[async_trait]
impl SentinelDialer for Stage {
    async fn dial(&self, sentinel: &HostPort) -> Result<Box<dyn SentinelLine>, ClientError> {
        if matches!(self.script(sentinel.port), Refuses) {
            return Err(ClientError::NotSent("refused".to_owned()));
        }
        Ok(Box::new(Line {
            stage: self.clone(),
            sentinel: sentinel.port,
        }))
    }
}

#[async_trait]
impl SentinelLine for Line {
    async fn ask(
        &self,
        commands: &[&[&[u8]]],
    ) -> Result<Vec<Result<Reply, ClientError>>, ClientError> {
        let (port, epoch, takes) = match self.stage.script(self.sentinel) {
            Says(port, epoch, takes) => (port, epoch, takes),
            Refuses => return Err(ClientError::MaybeExecuted("closed".to_owned())),
            Hangs => std::future::pending().await,
        };
        sleep(takes).await;
        let words = |words: &[&str]| {
            let word = |word: &&str| Reply::Bytes(Bytes::copy_from_slice(word.as_bytes()));
            Ok(Reply::Array(words.iter().map(word).collect()))
        };
        let answer = |command: &&[&[u8]]| match (command[1], epoch) {
            (b"MASTER", Some(epoch)) => {
                words(&["name", "mymaster", "config-epoch", &epoch.to_string()])
            }
            (b"MASTER", None) => Err(ClientError::rejected("NOPERM no permissions")),
            _ => words(&["127.0.0.1", &port.to_string()]),
        };
        Ok(commands.iter().map(answer).collect())
    }

    async fn subscribe(&self, _: &[&'static str]) -> Result<(), ClientError> {
        Ok(())
    }

    async fn message(&self) {
        self.stage.announced.notified().await;
    }
}

/// Sentinels 1, 2, ... that follow these scripts.
fn stage(scripts: &[Script]) -> (Stage, Arc<Sentinels>) {
    let stage = Stage::default();
    let mut addresses = Vec::new();
    for (port, script) in (1..).zip(scripts) {
        stage.set(port, script.clone());
        let host = "127.0.0.1".to_owned();
        addresses.push(HostPort { host, port });
    }
    let servers = Servers::Sentinel {
        sentinels: addresses.clone(),
        master_name: "mymaster".to_owned(),
    };
    let budget = Budget::of(&ConnectOptions::new(servers));
    let sentinels = Sentinels::new(&addresses, "mymaster", budget, stage.clone());
    (stage, Arc::new(sentinels))
}

async fn named(sentinels: &Sentinels) -> u16 {
    sentinels.primary().await.unwrap().server().port
}

#[tokio::test(start_paused = true)]
async fn the_highest_epoch_counts_whoever_answers_first() {
    let late = Duration::from_millis(40);
    let (_, sentinels) = stage(&[
        Says(100, Some(4), AT_ONCE),
        Says(100, Some(4), AT_ONCE),
        Says(200, Some(5), late),
    ]);
    assert_eq!(named(&sentinels).await, 200);
}

#[tokio::test(start_paused = true)]
async fn of_those_without_an_epoch_most_count_and_any_epoch_counts_more() {
    let (stage, sentinels) = stage(&[
        Says(100, None, AT_ONCE),
        Says(200, None, AT_ONCE),
        Says(200, None, AT_ONCE),
    ]);
    assert_eq!(named(&sentinels).await, 200);
    stage.set(1, Says(100, Some(0), AT_ONCE));
    assert_eq!(named(&sentinels).await, 100);
}

/// Dead sentinels cost nothing, and hanging ones a grace, in any number and order.
#[tokio::test(start_paused = true)]
async fn silent_sentinels_hardly_delay() {
    for (scripts, longest) in [
        ([Refuses, Refuses, Says(100, Some(1), AT_ONCE)], AT_ONCE * 2),
        ([Hangs, Hangs, Says(100, Some(1), AT_ONCE)], GRACE * 2),
        ([Hangs, Refuses, Says(100, Some(1), AT_ONCE)], GRACE * 2),
    ] {
        let (_, sentinels) = stage(&scripts);
        let begun = Instant::now();
        assert_eq!(named(&sentinels).await, 100);
        assert!(begun.elapsed() <= longest, "{:?}", begun.elapsed());
    }
}

/// The grace grows with the distance.
#[tokio::test(start_paused = true)]
async fn sentinels_far_away_are_heard() {
    let far = Duration::from_millis(300);
    let farther = Duration::from_millis(550);
    let (_, sentinels) = stage(&[Says(100, Some(4), far), Says(200, Some(5), farther)]);
    assert_eq!(named(&sentinels).await, 200);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_within_the_budget() {
    let (_, sentinels) = stage(&[Hangs, Refuses]);
    let begun = Instant::now();
    let error = sentinels.primary().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::NotSent(why) if why.contains("nothing heard")),
        "{error}"
    );
    assert!(begun.elapsed() <= sentinels.budget.answer_of_anybody());
}

/// A minority cannot lead back, but a majority can: epochs restart when sentinels are set up again.
#[tokio::test(start_paused = true)]
async fn what_was_heard_is_remembered_against_a_minority() {
    let (stage, sentinels) = stage(&[
        Says(200, Some(5), AT_ONCE),
        Says(100, Some(4), AT_ONCE),
        Says(100, Some(4), AT_ONCE),
    ]);
    assert_eq!(named(&sentinels).await, 200);
    stage.set(1, Refuses);
    stage.set(2, Hangs);
    let error = sentinels.primary().await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:200 has replaced"), "{error}");
    stage.set(2, Says(100, Some(4), AT_ONCE));
    assert_eq!(named(&sentinels).await, 100);
    stage.set(3, Refuses);
    assert_eq!(
        named(&sentinels).await,
        100,
        "there is nothing newer any more"
    );
}

/// Half of them are no majority; all of them are.
#[tokio::test(start_paused = true)]
async fn half_of_the_sentinels_cannot_lead_back() {
    let older = || Says(100, Some(4), AT_ONCE);
    let (stage, sentinels) = stage(&[Says(200, Some(5), AT_ONCE), older(), older(), older()]);
    assert_eq!(named(&sentinels).await, 200);
    for (silent, is_believed) in [(&[1, 2][..], false), (&[1], true)] {
        for sentinel in 1..=4 {
            stage.set(sentinel, older());
        }
        for sentinel in silent {
            stage.set(*sentinel, Refuses);
        }
        let named = sentinels.primary().await;
        assert_eq!(named.is_ok(), is_believed, "{named:?}");
    }
    // With a single sentinel, one is all.
    let (stage, sentinels) = self::stage(&[Says(200, Some(5), AT_ONCE)]);
    assert_eq!(named(&sentinels).await, 200);
    stage.set(1, older());
    assert_eq!(named(&sentinels).await, 100);
}

async fn is_replaced(sentinels: &Sentinels, primary: &NamedPrimary, within: Duration) -> bool {
    timeout(within, sentinels.replaced(primary)).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn an_announcement_is_followed_at_once_and_silence_soon() {
    for announced in [true, false] {
        let (stage, sentinels) = stage(&[Says(100, Some(4), AT_ONCE), Says(100, Some(4), AT_ONCE)]);
        let before = sentinels.primary().await.unwrap();
        let watched = Arc::clone(&sentinels);
        let watching = tokio::spawn(async move { watched.watch().await });
        assert!(!is_replaced(&sentinels, &before, INTERVAL * 3).await);
        // Only one of them knows.
        stage.set(2, Says(200, Some(5), AT_ONCE));
        let limit = if announced {
            stage.announced.notify_waiters();
            AT_ONCE * 3
        } else {
            INTERVAL + AT_ONCE * 3
        };
        assert!(is_replaced(&sentinels, &before, limit).await, "{announced}");
        let after = sentinels.primary().await.unwrap();
        assert_eq!(after.server().port, 200);
        assert!(!is_replaced(&sentinels, &after, INTERVAL * 3).await);
        watching.abort();
    }
}

/// No news: an older epoch, another name for the same server, or a sentinel that may not tell.
#[tokio::test(start_paused = true)]
async fn what_is_no_news_moves_nobody() {
    let (stage, sentinels) = stage(&[Says(100, Some(4), AT_ONCE), Says(100, Some(4), AT_ONCE)]);
    let primary = sentinels.primary().await.unwrap();
    let watched = Arc::clone(&sentinels);
    let watching = tokio::spawn(async move { watched.watch().await });
    for script in [
        Says(300, Some(3), AT_ONCE),
        Says(300, Some(4), AT_ONCE),
        Says(100, Some(9), AT_ONCE),
        Says(300, None, AT_ONCE),
        Refuses,
        Hangs,
    ] {
        stage.set(2, script);
        assert!(!is_replaced(&sentinels, &primary, INTERVAL * 5).await);
    }
    watching.abort();
}
