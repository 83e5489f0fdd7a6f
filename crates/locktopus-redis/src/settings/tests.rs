use super::*;

fn info(addr: ConnectionAddr, login: RedisConnectionInfo) -> ConnectionInfo {
    addr.into_connection_info()
        .unwrap()
        .set_redis_settings(login)
}

fn tls(host: &str) -> ConnectionAddr {
    ConnectionAddr::TcpTls {
        host: host.to_owned(),
        port: 6380,
        insecure: false,
        tls_params: None,
    }
}

fn login() -> RedisConnectionInfo {
    RedisConnectionInfo::default()
        .set_username("app")
        .set_password("hunter2")
}

fn app(password: &str) -> Option<Credentials> {
    Some(Credentials {
        username: Some("app".to_owned()),
        password: Secret::new(password),
    })
}

#[test]
fn all_of_one_server() {
    let read = from_connection_info(&info(tls("db"), login().set_db(3))).unwrap();
    let expected = ConnectOptions {
        credentials: app("hunter2"),
        database: 3,
        tls: Some(TlsOptions::default()),
        ..ConnectOptions::new(Servers::Standalone(server("db", 6380)))
    };
    assert_eq!(read.options, expected);
    assert_eq!(read.hidden_tls, None);
    assert!(!format!("{read:?}").contains("hunter2"));
    let socket = ConnectionAddr::Unix("/run/redis.sock".into());
    let read = from_connection_info(&info(socket, RedisConnectionInfo::default())).unwrap();
    assert_eq!(
        read.options,
        ConnectOptions::new(Servers::Standalone(HostPort::unix("/run/redis.sock")))
    );
}

#[test]
fn what_cannot_be_used_is_named() {
    let below = RedisConnectionInfo::default().set_db(-1);
    let relative = ConnectionAddr::Unix("redis.sock".into());
    for (given, named) in [
        (info(tls("h"), below), "the database is -1"),
        (info(relative, login()), "absolute path"),
    ] {
        let error = from_connection_info(&given).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn certificates_that_cannot_be_read_are_not_forgotten() {
    let (_, hidden) = encryption(false, true);
    assert!(hidden.unwrap().to_string().contains("ca, cert, key"));
    assert_eq!(encryption(true, false).1, None);
}

#[test]
fn nodes_of_a_cluster_agree() {
    let read = from_cluster_nodes([info(tls("a"), login()), info(tls("b"), login())]).unwrap();
    let nodes = vec![server("a", 6380), server("b", 6380)];
    assert_eq!(read.options.servers, Servers::Cluster(nodes));
    assert_eq!(read.options.credentials, app("hunter2"));
    let plain = || ConnectionAddr::Tcp("b".to_owned(), 1);
    for (nodes, named) in [
        (vec![], "none"),
        (
            vec![
                info(tls("a"), login()),
                info(tls("b"), login().set_password("hunter3")),
            ],
            "different logins",
        ),
        (
            vec![info(tls("a"), login()), info(plain(), login())],
            "different TLS",
        ),
        (
            vec![info(ConnectionAddr::Unix("/s".into()), login())],
            "unix sockets",
        ),
    ] {
        let error = from_cluster_nodes(nodes).unwrap_err().to_string();
        assert!(
            error.contains(named) && !error.contains("hunter"),
            "{error}"
        );
    }
    let error = from_cluster_nodes(["redis://app:hunter2@h:port"]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

#[test]
fn sentinels_have_settings_of_their_own() {
    let sentinels = [info(ConnectionAddr::Tcp("s".to_owned(), 26379), login())];
    let primary = login().set_password("hunter3").set_db(2);
    let read = from_sentinels(sentinels, "mymaster", Some(TlsMode::Insecure), &primary).unwrap();
    let expected = ConnectOptions {
        credentials: app("hunter3"),
        sentinel_credentials: app("hunter2"),
        database: 2,
        tls: Some(TlsOptions::default().insecure(true)),
        sentinel_tls: SentinelTls::Off,
        ..ConnectOptions::new(Servers::Sentinel {
            sentinels: vec![server("s", 26379)],
            master_name: "mymaster".to_owned(),
        })
    };
    assert_eq!(read.options, expected);
}
