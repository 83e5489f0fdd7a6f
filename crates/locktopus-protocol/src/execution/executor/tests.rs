//! Each error of a server at each step, against a client that says what it is told to.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::client::stub::{self, Stub};
use crate::execution::call::Effect;
use crate::scripts::LOCK;

#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<Reply, ClientError>>>,
    sent: Mutex<Vec<Vec<u8>>>,
    last: Mutex<Vec<Vec<u8>>>,
    timeouts: AtomicUsize,
    single: bool,
}

#[async_trait]
impl Stub for Scripted {
    fn deployment(&self) -> Deployment {
        match self.single {
            true => Deployment::Standalone,
            false => Deployment::Cluster,
        }
    }
    async fn command(&self, _route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        self.sent.lock().unwrap().push(args[0].to_vec());
        *self.last.lock().unwrap() = args.iter().map(|arg| arg.to_vec()).collect();
        let answer = self.answers.lock().unwrap().pop_front();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
    async fn pipeline(
        &self,
        route: Route,
        commands: &[&[&[u8]]],
    ) -> Result<Pipelined, ClientError> {
        let mut replies = Vec::new();
        for args in commands {
            match self.command(route, args).await {
                Err(error @ (ClientError::NotSent(_) | ClientError::MaybeExecuted(_))) => {
                    return Err(error);
                }
                answer => replies.push(answer),
            }
        }
        Ok(Pipelined {
            node: "h:1".to_owned(),
            replies,
        })
    }
    fn timed_out(&self, _route: Route) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
    }
}

async fn run(
    answers: impl IntoIterator<Item = Result<Reply, ClientError>>,
) -> (Result<Reply, BackendError>, Arc<Scripted>) {
    run_on(false, answers).await
}

async fn run_on(
    single: bool,
    answers: impl IntoIterator<Item = Result<Reply, ClientError>>,
) -> (Result<Reply, BackendError>, Arc<Scripted>) {
    let client = Arc::new(Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        single,
        ..Scripted::default()
    });
    let executor = Executor::new(stub::client(&client));
    let deadline = Instant::now() + Duration::from_secs(1);
    let (keys, args): ([&[u8]; 1], [&[u8]; 1]) = ([b"k"], [b"a"]);
    let call = Call::new(Effect::Grant, &LOCK.acquire, &keys, &args, 0, deadline);
    (executor.run(Way::Usual, &call).await, client)
}

fn commands(client: &Scripted) -> Vec<String> {
    client
        .sent
        .lock()
        .unwrap()
        .iter()
        .map(|name| String::from_utf8(name.clone()).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_script_is_sent_once_more_in_full() {
    let (answer, client) = run([
        Err(ClientError::rejected("NOSCRIPT No matching script")),
        Ok(Reply::Int(1)),
    ])
    .await;
    assert_eq!(answer.unwrap(), Reply::Int(1));
    assert_eq!(commands(&client), ["EVALSHA", "EVAL"]);
}

#[tokio::test(start_paused = true)]
async fn a_single_server_that_names_another_one_is_a_node_of_a_cluster() {
    for line in ["MOVED 1 h:1", "ASK 1 h:1", "CROSSSLOT Keys in request"] {
        let (answer, client) = run_on(true, [Err(ClientError::rejected(line))]).await;
        let error = answer.unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
        assert!(
            error.message().contains("write redis-cluster://"),
            "{error}"
        );
        assert_eq!(commands(&client), ["EVALSHA"]);
    }
}

#[tokio::test(start_paused = true)]
async fn passing_refusals_are_sent_again_until_they_pass() {
    for code in [
        "MOVED 1 h:1",
        "ASK 1 h:1",
        "TRYAGAIN x",
        "CLUSTERDOWN x",
        "LOADING x",
        "READONLY x",
        "MASTERDOWN x",
        "NOREPLICAS x",
        "BUSY x",
        "MISCONF x",
    ] {
        let (answer, client) = run([Err(ClientError::rejected(code)), Ok(Reply::Nil)]).await;
        assert_eq!(answer.unwrap(), Reply::Nil, "{code}");
        assert_eq!(commands(&client).len(), 2, "{code}");
    }
    let (answer, client) = run([
        Err(ClientError::NotSent("no connection".into())),
        Ok(Reply::Nil),
    ])
    .await;
    assert!(answer.is_ok() && commands(&client).len() == 2);
}

#[tokio::test(start_paused = true)]
async fn a_slot_on_its_way_gets_the_first_key_alone() {
    let client = Arc::new(Scripted::default());
    let answers = [Err(ClientError::rejected("TRYAGAIN x")), Ok(Reply::Int(1))];
    client.answers.lock().unwrap().extend(answers);
    let executor = Executor::new(stub::client(&client));
    let call = Call {
        script: &LOCK.release,
        keys: &[b"a", b"b", b"c"],
        args: &[b"x", b"y"],
        slot: 0,
        deadline: Instant::now() + Duration::from_secs(1),
        effect: Effect::Release,
        on_split: OnSplit::FirstKey,
    };
    assert_eq!(
        executor.run(Way::Usual, &call).await.unwrap(),
        Reply::Int(1)
    );
    let sent = client.last.lock().unwrap();
    assert_eq!(sent[2..], [&b"1"[..], b"a", b"x", b"y"]);
}

/// A pipeline is not sent on to the node that has the first key.
#[tokio::test(start_paused = true)]
async fn in_line_every_key_is_waited_for() {
    let client = Arc::new(Scripted::default());
    let answers = [Err(ClientError::rejected("TRYAGAIN x")), Ok(Reply::Int(1))];
    client.answers.lock().unwrap().extend(answers);
    let executor = Executor::new(stub::client(&client));
    let call = Call {
        script: &LOCK.release,
        keys: &[b"a", b"b"],
        args: &[b"x"],
        slot: 0,
        deadline: Instant::now() + Duration::from_secs(1),
        effect: Effect::Release,
        on_split: OnSplit::FirstKey,
    };
    assert_eq!(
        executor.run(Way::Blocking, &call).await.unwrap(),
        Reply::Int(1)
    );
    let sent = client.last.lock().unwrap();
    assert_eq!(sent[2..], [&b"2"[..], b"a", b"b", b"x"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_does_not_pass_was_not_executed() {
    let (answer, _) =
        run((0..1000).map(|_| Err(ClientError::rejected("CLUSTERDOWN no slots")))).await;
    let error = answer.unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (BackendErrorKind::Unavailable, Executed::No)
    );
}

#[tokio::test(start_paused = true)]
async fn final_refusals_are_reported_at_once() {
    for (line, kind, executed) in [
        ("OOM x", BackendErrorKind::Refused, Executed::No),
        ("NOAUTH x", BackendErrorKind::Denied, Executed::No),
        (
            "BADTOKEN nothing was written: x",
            BackendErrorKind::Protocol,
            Executed::No,
        ),
        (
            "NOHISTORY nothing was written: x",
            BackendErrorKind::Denied,
            Executed::No,
        ),
        (
            "OTHERLEASE nothing was written: x",
            BackendErrorKind::Refused,
            Executed::No,
        ),
        // No script began.
        (
            "ERR unknown command 'EVALSHA', with args beginning with: 'd1' '4' ",
            BackendErrorKind::Refused,
            Executed::No,
        ),
        (
            "ERR unknown command `evalsha`",
            BackendErrorKind::Refused,
            Executed::No,
        ),
        (
            "ERR unknown command 'EVAL', with args beginning with: '-- A script: ...' ",
            BackendErrorKind::Refused,
            Executed::No,
        ),
        (
            "ERR command 'EVAL' is not allowed",
            BackendErrorKind::Refused,
            Executed::No,
        ),
        (
            "NOPERM this user has no permissions to run the 'evalsha' command",
            BackendErrorKind::Denied,
            Executed::No,
        ),
        (
            "NOPERM User app has no permissions to run the 'eval' command",
            BackendErrorKind::Denied,
            Executed::No,
        ),
        (
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            BackendErrorKind::Denied,
            Executed::No,
        ),
        (
            "NOPERM No permissions to access a key",
            BackendErrorKind::Denied,
            Executed::No,
        ),
        // A script may have been stopped half-way by these.
        (
            "NOPERM ACL failure in script: No permissions to access a key script: d1, on @user_script:3.",
            BackendErrorKind::Denied,
            Executed::Maybe,
        ),
        (
            "ERR Unknown Redis command called from script script: d1, on @user_script:3.",
            BackendErrorKind::Refused,
            Executed::Maybe,
        ),
        ("BADTOKEN x", BackendErrorKind::Protocol, Executed::Maybe),
        ("NOPERM x", BackendErrorKind::Denied, Executed::Maybe),
        ("ERR x", BackendErrorKind::Refused, Executed::Maybe),
        ("WRONGTYPE x", BackendErrorKind::Refused, Executed::Maybe),
        (
            "ERR The user executing the script can't run this command",
            BackendErrorKind::Denied,
            Executed::Maybe,
        ),
    ] {
        let (answer, client) = run([Err(ClientError::rejected(line))]).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind(), error.executed()), (kind, executed), "{line}");
        assert_eq!(commands(&client).len(), 1, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_never_sent_again() {
    let (answer, client) = run([
        Err(ClientError::MaybeExecuted("broken pipe".into())),
        Ok(Reply::Nil),
    ])
    .await;
    assert_eq!(answer.unwrap_err().executed(), Executed::Maybe);
    assert_eq!(commands(&client), ["EVALSHA"]);

    let (answer, client) = run([]).await;
    let error = answer.unwrap_err();
    assert_eq!(
        (error.kind(), error.executed()),
        (BackendErrorKind::Timeout, Executed::Maybe)
    );
    assert_eq!(commands(&client), ["EVALSHA"]);
    assert_eq!(client.timeouts.load(Ordering::Relaxed), 1);
}
