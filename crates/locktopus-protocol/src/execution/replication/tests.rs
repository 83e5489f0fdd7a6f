//! What is concluded from each answer to a script with `WAIT` behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use locktopus_contract::ConnectedReplicas;

use super::*;
use crate::client::Deployment;
use crate::client::stub::{self, Stub};
use crate::execution::call::Effect;
use crate::scripts::LOCK;

type Answer = Result<Reply, ClientError>;

/// Answers each pipeline as it is told to, and keeps the words of all commands.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Vec<Answer>>>,
    sent: Mutex<Vec<Vec<String>>>,
}

#[async_trait]
impl Stub for Scripted {
    fn deployment(&self) -> Deployment {
        Deployment::Sentinel
    }
    async fn pipeline(
        &self,
        _route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let word = |word: &&[u8]| String::from_utf8_lossy(word).into_owned();
        let short = commands.iter().map(|args| {
            let words: Vec<_> = args.iter().map(word).collect();
            match words[0].as_str() {
                "EVALSHA" | "EVAL" => words[0].clone(),
                _ => words.join(" "),
            }
        });
        lock(&self.sent).push(short.collect());
        let replies = lock(&self.answers).pop_front();
        match replies {
            Some(replies) => Ok(Pipelined {
                node: "h:1".to_owned(),
                replies,
            }),
            None => std::future::pending().await,
        }
    }
}

fn replicas(count: usize) -> Answer {
    let replica = Reply::Array(Vec::new());
    Ok(Reply::Array(vec![
        Reply::Bytes("master".into()),
        Reply::Int(7),
        Reply::Array(vec![replica; count]),
    ]))
}

/// The script's answer is 9, so many replicas confirmed, and there are so many.
fn answer(confirmed: i64, connected: usize) -> Vec<Answer> {
    vec![
        Ok(Reply::Int(9)),
        Ok(Reply::Bytes("OK".into())),
        Ok(Reply::Int(confirmed)),
        replicas(connected),
    ]
}

struct Bench {
    replication: Replication,
    client: Arc<Scripted>,
    executor: Executor,
}

fn bench(need: ReplicaNeed) -> Bench {
    let client = Arc::<Scripted>::default();
    Bench {
        replication: Replication::new(need, Duration::from_millis(500), false),
        executor: Executor::new(stub::client(&client)),
        client,
    }
}

impl Bench {
    async fn run(
        &self,
        answers: impl IntoIterator<Item = Vec<Answer>>,
    ) -> Result<Confirmed, BackendError> {
        lock(&self.client.answers).extend(answers);
        lock(&self.client.sent).clear();
        let deadline = Instant::now() + Duration::from_secs(1);
        let (keys, args): ([&[u8]; 1], [&[u8]; 1]) = ([b"k"], [b"a"]);
        let call = Call::new(Effect::Grant, &LOCK.acquire, &keys, &args, 0, deadline);
        self.executor.run_replicated(&self.replication, &call).await
    }

    fn sent(&self) -> Vec<Vec<String>> {
        lock(&self.client.sent).clone()
    }
}

fn short(confirmed: Result<Confirmed, BackendError>) -> (u32, u32, ConnectedReplicas) {
    match confirmed.unwrap().unconfirmed {
        Some(Unconfirmed::Short(short)) => (short.confirmed, short.needed, short.connected),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn enough_is_enough() {
    for (need, confirmed, connected) in [
        (ReplicaNeed::Majority, 1, 1),
        (ReplicaNeed::Majority, 1, 2),
        (ReplicaNeed::All, 1, 1),
    ] {
        let bench = bench(need);
        let found = bench.run([answer(confirmed, connected)]).await.unwrap();
        assert_eq!(found.reply, Reply::Int(9));
        assert!(found.unconfirmed.is_none(), "{need:?}: {found:?}");
        assert_eq!(bench.sent(), [["EVALSHA", "EVAL", "WAIT 1 500", "ROLE"]]);
    }
    // Who needs one does not ask how many there are.
    let bench = bench(ReplicaNeed::One);
    let three = answer(1, 0).into_iter().take(3).collect();
    assert!(bench.run([three]).await.unwrap().unconfirmed.is_none());
    assert_eq!(bench.sent(), [["EVALSHA", "EVAL", "WAIT 1 500"]]);
}

#[tokio::test(start_paused = true)]
async fn more_replicas_than_known_are_waited_for_once_more() {
    let bench = bench(ReplicaNeed::All);
    let found = bench.run([answer(1, 2), answer(2, 2)]).await.unwrap();
    assert!(found.unconfirmed.is_none(), "{found:?}");
    let waits: Vec<_> = bench
        .sent()
        .into_iter()
        .map(|sent| sent[2].clone())
        .collect();
    assert_eq!(waits, ["WAIT 1 500", "WAIT 2 500"]);
    // From now on it is known, also when one is away.
    assert_eq!(
        short(bench.run([answer(1, 1)]).await),
        (1, 2, ConnectedReplicas::Count(1))
    );
    assert_eq!(bench.sent().len(), 1);
}

/// The first pass ran the script, whatever becomes of the second.
#[tokio::test(start_paused = true)]
async fn what_fails_the_second_time_may_have_run() {
    let refused = |line: &str| {
        let mut answers = answer(2, 2);
        answers[0] = Err(ClientError::rejected(line));
        answers
    };
    for line in [
        "READONLY x",
        "MOVED 1 h:2",
        "OOM x",
        "NOAUTH x",
        "NOREPLICAS x",
    ] {
        let seconds = std::iter::repeat_with(|| refused(line)).take(1_000);
        let bench = bench(ReplicaNeed::All);
        let answers = std::iter::once(answer(1, 2)).chain(seconds);
        let error = bench.run(answers).await.unwrap_err();
        assert_eq!(error.executed(), Executed::Maybe, "{line}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_few_are_told_with_their_numbers() {
    let majority = bench(ReplicaNeed::Majority);
    assert_eq!(
        short(majority.run([answer(0, 0)]).await),
        (0, 1, ConnectedReplicas::Count(0))
    );
    let one = bench(ReplicaNeed::One);
    let three = answer(0, 0).into_iter().take(3).collect();
    assert_eq!(
        short(one.run([three]).await),
        (0, 1, ConnectedReplicas::NotAsked)
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_not_asked_is_not_confirmed() {
    let refused = |line: &str| Err(ClientError::rejected(line));
    for (at, line) in [
        (1, "MOVED 1 h:2"),
        (2, "NOPERM no WAIT for you"),
        (3, "NOPERM no ROLE for you"),
    ] {
        let mut answers = answer(5, 1);
        answers[at] = refused(line);
        let found = bench(ReplicaNeed::Majority).run([answers]).await.unwrap();
        assert!(
            matches!(found.unconfirmed, Some(Unconfirmed::Refused(_))),
            "{line}"
        );
    }
    let mut demoted = answer(5, 1);
    demoted[3] = Ok(Reply::Array(vec![Reply::Bytes("slave".into())]));
    let found = bench(ReplicaNeed::All).run([demoted]).await.unwrap();
    assert!(matches!(found.unconfirmed, Some(Unconfirmed::Refused(_))));
    let cut = answer(5, 1).into_iter().take(2).collect();
    let found = bench(ReplicaNeed::All).run([cut]).await.unwrap();
    assert!(matches!(found.unconfirmed, Some(Unconfirmed::Refused(_))));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_the_script_are_as_without_wait() {
    let refused = |line: &str| {
        let mut answers = answer(1, 1);
        answers[0] = Err(ClientError::rejected(line));
        answers
    };
    let bench = bench(ReplicaNeed::Majority);
    let found = bench
        .run([refused("NOSCRIPT x"), refused("MOVED 1 h:2"), answer(1, 1)])
        .await
        .unwrap();
    assert!(found.unconfirmed.is_none());
    let firsts: Vec<_> = bench
        .sent()
        .into_iter()
        .map(|sent| sent[0].clone())
        .collect();
    assert_eq!(firsts, ["EVALSHA", "EVAL", "EVAL"]);
    let error = bench.run([refused("OOM x")]).await.unwrap_err();
    assert_eq!(error.executed(), Executed::No);
    let error = bench.run([]).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (BackendErrorKind::Timeout, Executed::Maybe)
    );
}

#[tokio::test(start_paused = true)]
async fn errors_say_what_to_do() {
    let executor = bench(ReplicaNeed::One).executor;
    let kind = |line: &str| {
        let unconfirmed = Unconfirmed::Refused(ClientError::rejected(line));
        executor
            .not_replicated(unconfirmed, Executed::No, "granted")
            .kind()
    };
    assert_eq!(kind("NOPERM x"), BackendErrorKind::Denied);
    assert_eq!(kind("MOVED 1 h:1"), BackendErrorKind::Unavailable);
    let short = NotReplicated::new("h:1", 0, 2, Duration::from_millis(500)).of_connected(1);
    let error = executor.not_replicated(Unconfirmed::Short(short), Executed::No, "granted");
    assert_eq!(error.kind(), BackendErrorKind::NotReplicated);
    assert!(error.is_transient());
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        source,
        "0 of 2 needed replicas of h:1 confirmed it within 500ms (1 are connected)"
    );
}
