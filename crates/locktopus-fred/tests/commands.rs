//! Commands and their answers, on all three deployments.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::time::{Duration, Instant};

use common::{
    address, bytes, call, client, connections, eventually, options, read_int, route, servers,
};
use locktopus_fred::{ConnectError, connect};
use locktopus_protocol::{
    ClientError, ConnectOptions, Credentials, Deployment, HostPort, RedisClient, Reply, Route,
    Secret, Servers, TlsOptions,
};
use locktopus_testbed::topology::{Knobs, Spec, TopologyKind};
use tokio::time::timeout;

/// Every kind of answer, on keys of several nodes.
async fn answers_on(kind: TopologyKind, deployment: Deployment) {
    let servers = servers(kind).await;
    let client = client(&servers).await;
    assert_eq!(client.deployment(), deployment);
    assert_eq!(client.name(), "fred");
    for key in ["{a}k", "{b}k", "{c}k", "{d}k"] {
        let eval = async |script: &str| call(&client, key, &["EVAL", script, "1", key, "v"]).await;
        assert_eq!(
            call(&client, key, &["SET", key, "1"]).await,
            Ok(bytes("OK"))
        );
        assert_eq!(
            eval("return redis.call('incr', KEYS[1])").await,
            Ok(Reply::Int(2))
        );
        assert_eq!(call(&client, key, &["GET", key]).await, Ok(bytes("2")));
        assert_eq!(eval("return false").await, Ok(Reply::Nil));
        let array = Reply::Array(vec![Reply::Int(1), bytes("v"), Reply::Array(vec![])]);
        assert_eq!(eval("return {1, ARGV[1], {}}").await, Ok(array));
        let half = eval("redis.setresp(3); return {double = 0.5}").await;
        assert_eq!(half, Ok(bytes("0.5")));
        let flag = eval("redis.setresp(3); return true").await;
        assert_eq!(flag, Ok(Reply::Int(1)));

        let unknown = [
            "EVALSHA",
            "0123456789012345678901234567890123456789",
            "1",
            key,
        ];
        assert_eq!(code(call(&client, key, &unknown).await), "NOSCRIPT");
        let custom = eval("return redis.error_reply('MYERR boom')")
            .await
            .unwrap_err();
        let expected = ClientError::Rejected {
            code: "MYERR".into(),
            message: "boom".into(),
        };
        assert_eq!(custom, expected);
        assert_eq!(
            code(call(&client, key, &["HGET", key, "f"]).await),
            "WRONGTYPE"
        );
    }
    let words: [&[u8]; 2] = [b"SCRIPT LOAD", b"return 1"];
    assert!(matches!(
        client.command(Route::Any, &words).await,
        Err(ClientError::NotSent(_))
    ));
    client.close().await;
    let refused = call(&client, "{a}k", &["GET", "{a}k"]).await;
    assert!(
        matches!(refused, Err(ClientError::NotSent(_))),
        "{refused:?}"
    );
}

fn code(outcome: Result<Reply, ClientError>) -> String {
    match outcome {
        Err(ClientError::Rejected { code, .. }) => code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn answers_on_standalone() {
    answers_on(TopologyKind::Standalone, Deployment::Standalone).await;
}

#[tokio::test]
async fn answers_on_sentinel() {
    answers_on(TopologyKind::SENTINEL, Deployment::Sentinel).await;
}

#[tokio::test]
async fn answers_on_cluster() {
    answers_on(TopologyKind::CLUSTER, Deployment::Cluster).await;
}

#[tokio::test]
async fn every_primary_answers_by_itself() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    let words: [&[u8]; 3] = [b"SCRIPT", b"LOAD", b"return 1"];
    let replies = client.command_on_primaries(&words).await.unwrap();
    let mut nodes: Vec<_> = replies.iter().map(|reply| reply.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3, "{replies:?}");
    assert!(
        replies.iter().all(|reply| reply.reply.is_ok()),
        "{replies:?}"
    );
}

#[tokio::test]
async fn the_one_primary_is_named_by_its_address() {
    for kind in [TopologyKind::Standalone, TopologyKind::SENTINEL] {
        let servers = servers(kind).await;
        let client = client(&servers).await;
        let replies = client.command_on_primaries(&[b"PING"]).await.unwrap();
        let primary = servers.primary().await.unwrap().addr().to_string();
        assert_eq!(replies.len(), 1);
        assert_eq!(
            (&replies[0].node, &replies[0].reply),
            (&primary, &Ok(bytes("PONG")))
        );
    }
}

#[tokio::test]
async fn a_dead_address_is_reported_in_time() {
    let nobody = HostPort {
        host: "127.0.0.1".into(),
        port: 1,
    };
    let sentinels = vec![nobody.clone(), nobody.clone()];
    let all = [
        Servers::Standalone(nobody.clone()),
        Servers::Sentinel {
            sentinels,
            master_name: "mymaster".into(),
        },
        Servers::Cluster(vec![nobody]),
    ];
    for servers in all {
        let begin = Instant::now();
        let failure = connect(&ConnectOptions::new(servers)).await.unwrap_err();
        assert!(
            matches!(failure, ConnectError::Unreachable { .. }),
            "{failure}"
        );
        assert!(failure.to_string().contains("127.0.0.1:1"), "{failure}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{failure}");
    }
}

#[tokio::test]
async fn a_silent_server_is_reported_in_time() {
    let servers = servers(TopologyKind::Standalone).await;
    servers.nodes()[0].freeze().await.unwrap();
    let begin = Instant::now();
    let failure = connect(&options(&servers)).await.unwrap_err();
    assert!(
        failure.to_string().contains("no answer within 1000 ms"),
        "{failure}"
    );
    assert!(begin.elapsed() < Duration::from_secs(2));
    servers.nodes()[0].thaw().await.unwrap();
}

#[tokio::test]
async fn logins_and_databases() {
    let rules = "app on >hunter2 ~* &* +@all -client|setname";
    let knobs = Knobs {
        users: vec![rules.into()],
        ..Knobs::default()
    };
    let servers = common::start(Spec::new(TopologyKind::Standalone).with_knobs(knobs)).await;
    let mut options = options(&servers);
    options.database = 3;
    options.client_name = Some("locktopus-test".into());
    let named = connect(&options).await.unwrap();
    let info = call(&named, "k", &["CLIENT", "INFO"]).await.unwrap();
    let Reply::Bytes(info) = info else {
        panic!("{info:?}")
    };
    let info = String::from_utf8(info.to_vec()).unwrap();
    assert!(
        info.contains("name=locktopus-test") && info.contains(" db=3 "),
        "{info}"
    );

    let login = |password: &str| {
        Some(Credentials {
            username: Some("app".into()),
            password: Secret::new(password),
        })
    };
    options.credentials = login("hunter2");
    let app = connect(&options).await.unwrap();
    assert_eq!(call(&app, "k", &["ACL", "WHOAMI"]).await, Ok(bytes("app")));
    assert!(!format!("{app:?}").contains("hunter2"));

    options.credentials = login("hunter3");
    let failure = connect(&options).await.unwrap_err().to_string();
    assert!(
        failure.contains("WRONGPASS") && !failure.contains("hunter3"),
        "{failure}"
    );
}

#[tokio::test]
async fn sentinels_have_logins_of_their_own() {
    let servers = servers(TopologyKind::SENTINEL).await;
    for sentinel in servers.sentinels() {
        let user = ["ACL", "SETUSER", "watcher", "on", ">hunter4", "+@all"];
        sentinel.command(&user).await.unwrap();
    }
    let mut options = options(&servers);
    let login = |password: &str| {
        Some(Credentials {
            username: Some("watcher".into()),
            password: Secret::new(password),
        })
    };
    options.sentinel_credentials = login("hunter4");
    let client = connect(&options).await.unwrap();
    assert_eq!(
        call(&client, "k", &["SET", "k", "1"]).await,
        Ok(bytes("OK"))
    );
    options.sentinel_credentials = login("hunter5");
    let failure = connect(&options).await.unwrap_err().to_string();
    assert!(!failure.contains("hunter"), "{failure}");
}

#[tokio::test]
async fn a_dropped_client_leaves_no_connection() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    let flavour = locktopus_protocol::ChannelFlavour::Plain;
    let channel = locktopus_protocol::Channel {
        name: "c".into(),
        flavour,
    };
    client.subscribe(&[channel]).await.unwrap();
    for key in ["{a}k", "{b}k", "{c}k"] {
        call(&client, key, &["GET", key]).await.unwrap();
    }
    let open = async || {
        let mut open = 0;
        for node in servers.nodes() {
            open += connections(node, "normal").await.len();
            open += connections(node, "pubsub").await.len();
        }
        open
    };
    assert!(open().await >= 4);
    drop(client);
    eventually("all connections are closed", async || open().await == 0).await;
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn tls_names_its_feature() {
    let nobody = HostPort {
        host: "127.0.0.1".into(),
        port: 1,
    };
    let mut options = ConnectOptions::new(Servers::Standalone(nobody));
    options.tls = Some(TlsOptions::default());
    let failure = connect(&options).await.unwrap_err();
    assert!(failure.to_string().contains("`tls`"), "{failure}");
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_with_a_private_authority() {
    let servers = servers(TopologyKind::Tls).await;
    let files = servers.tls().unwrap();
    let mut options = options(&servers);
    let trusting = TlsOptions {
        ca_file: Some(files.ca.clone()),
        ..TlsOptions::default()
    };
    let careless = TlsOptions {
        danger_accept_invalid_certs: true,
        ..TlsOptions::default()
    };
    for tls in [trusting, careless] {
        options.tls = Some(tls);
        let client = connect(&options).await.unwrap();
        assert_eq!(
            call(&client, "k", &["SET", "k", "5"]).await,
            Ok(bytes("OK"))
        );
        assert_eq!(read_int(&client, "k").await, 5);
    }
    options.tls = Some(TlsOptions::default());
    assert!(connect(&options).await.is_err());
    options.tls = None;
    assert!(connect(&options).await.is_err());
}

#[tokio::test]
async fn what_was_given_up_on_while_the_server_was_down_never_runs() {
    let knobs = Knobs {
        appendonly: true,
        ..Knobs::default()
    };
    let servers = common::start(Spec::new(TopologyKind::Standalone).with_knobs(knobs)).await;
    let client = client(&servers).await;
    let node = &servers.nodes()[0];
    assert_eq!(
        call(&client, "n", &["SET", "n", "0"]).await,
        Ok(bytes("OK"))
    );
    node.crash().await.unwrap();
    let down = Instant::now();
    let mut tries = 0;
    while down.elapsed() < Duration::from_secs(3) {
        let answer = client.command(route("n"), &[b"INCR", b"n"]);
        // Some are dropped in the middle of waiting, some are answered.
        if let Ok(outcome) =
            tokio::time::timeout(Duration::from_millis(3 + tries % 60), answer).await
        {
            assert!(outcome.is_err(), "{outcome:?}");
        }
        tries += 1;
    }
    node.start().await.unwrap();
    let (_, took) = common::until_ok(&client, "n", &["PING"]).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(read_int(&client, "n").await, 0, "a command came late");
}

/// Of several commands sent at once each has its answer, and one that blocks delays no other command.
#[tokio::test(flavor = "multi_thread")]
async fn pipelines_block_only_each_other() {
    let servers = servers(TopologyKind::Standalone).await;
    let client = client(&servers).await;
    let commands: [&[&[u8]]; 3] = [
        &[b"SET", b"begun", b"1"],
        &[b"BLPOP", b"list", b"0"],
        &[b"HGET", b"begun", b"f"],
    ];
    let pipeline = client.pipeline(Route::Slot(0), &commands);
    tokio::pin!(pipeline);
    let usual = async {
        eventually("a beginning", || async {
            call(&client, "begun", &["GET", "begun"]).await == Ok(bytes("1"))
        })
        .await;
    };
    tokio::select! {
        answers = &mut pipeline => panic!("not blocked: {answers:?}"),
        () = usual => {}
    }
    let push = call(&client, "list", &["RPUSH", "list", "x"]);
    let (answers, pushed) = tokio::join!(pipeline, push);
    assert_eq!(pushed, Ok(Reply::Int(1)));
    let answers = answers.unwrap();
    assert_eq!(answers.node, servers.nodes()[0].addr().to_string());
    let [set, popped, refused] = answers.replies.try_into().unwrap();
    assert_eq!(set, Ok(bytes("OK")));
    assert_eq!(popped, Ok(Reply::Array(vec![bytes("list"), bytes("x")])));
    assert!(
        matches!(&refused, Err(ClientError::Rejected { code, .. }) if code == "WRONGTYPE"),
        "{refused:?}"
    );
}

/// They go to the node of their slot, and a refusal of another one is an answer.
#[tokio::test(flavor = "multi_thread")]
async fn pipelines_on_a_cluster() {
    let servers = servers(TopologyKind::CLUSTER).await;
    let client = client(&servers).await;
    for key in ["{a}k", "{b}k", "{c}k", "{d}k"] {
        let set: &[&[u8]] = &[b"SET", key.as_bytes(), b"1"];
        let get: &[&[u8]] = &[b"GET", key.as_bytes()];
        let answers = client.pipeline(route(key), &[set, get]).await.unwrap();
        let owner = servers.primary_for(key).await.unwrap();
        assert_eq!(answers.node, owner.addr().to_string());
        assert_eq!(answers.replies, [Ok(bytes("OK")), Ok(bytes("1"))]);
    }
    // Slots 0 and 16383 are on different nodes.
    let away: &[&[u8]] = &[b"GET", b"{a}k"];
    let mut moved = 0;
    for slot in [0, 16_383] {
        let answers = client.pipeline(Route::Slot(slot), &[away]).await.unwrap();
        match &answers.replies[0] {
            Ok(_) => {}
            Err(ClientError::Rejected { code, .. }) if code == "MOVED" => moved += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(moved >= 1);
}

/// However long or short things may take by the options: an answer or an error, and no panic.
#[tokio::test]
async fn no_duration_is_too_long_or_too_short() {
    let deployment = servers(TopologyKind::Sentinel {
        replicas: 0,
        sentinels: 1,
    })
    .await;
    let by_sentinel = options(&deployment);
    let direct = ConnectOptions {
        servers: Servers::Standalone(address(&deployment.nodes()[0])),
        ..by_sentinel.clone()
    };
    let cluster = ConnectOptions {
        servers: Servers::Cluster(vec![address(&deployment.nodes()[0])]),
        ..by_sentinel.clone()
    };
    let second = Duration::from_secs(1);
    let mut all = vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_secs(10),
        Duration::from_secs(u64::MAX / 4),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ];
    // And some of every size in between.
    all.extend(
        (0..60)
            .step_by(6)
            .map(|bits| Duration::from_secs(0x9e37_79b9_7f4a_7c15 >> bits)),
    );
    for (at, connect_timeout) in all.iter().enumerate() {
        let command_timeout = all[all.len() - 1 - at];
        for options in [&by_sentinel, &direct, &cluster] {
            let options = ConnectOptions {
                connect_timeout: *connect_timeout,
                command_timeout,
                ..options.clone()
            };
            let connected = locktopus_fred::connect(&options).await;
            let possible = !matches!(options.servers, Servers::Cluster(_));
            if *connect_timeout > second && command_timeout > second {
                let what = (connect_timeout, command_timeout);
                assert_eq!(connected.is_ok(), possible, "{what:?}: {connected:?}");
            }
            if let Ok(client) = connected {
                client.timed_out(Route::Any);
                let _ = timeout(second, client.command(Route::Any, &[b"PING"])).await;
                let _ = timeout(second, client.pipeline(Route::Any, &[&[b"PING"]])).await;
                client.close().await;
            }
        }
    }
}
