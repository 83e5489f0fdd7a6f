//! A server with only a unix socket.

use locktopus::fred::fred::types::config::{Config, ServerConfig};
use locktopus::redis::redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};
use locktopus_servers::topology::{Knobs, TopologyKind};

use crate::common::{CLIENTS, close, connect, servers_with, unique};
use crate::own_client::{PASSWORD, USER, lock_once, works_as};

pub(crate) async fn works() {
    let path = std::env::temp_dir().join(format!("{}.sock", unique("redis").replace(':', "-")));
    let path_text = path.to_str().unwrap().to_owned();
    let knobs = Knobs {
        users: vec![format!("{USER} on >{PASSWORD} ~* &* +@all")],
        extra_args: vec!["--unixsocket".to_owned(), path_text.clone()],
        ..Knobs::default()
    };
    let place = servers_with(TopologyKind::Standalone, knobs).await;
    let node = &place.nodes()[0];

    let login = RedisConnectionInfo::default()
        .set_username(USER)
        .set_password(PASSWORD)
        .set_db(3);
    let info = ConnectionAddr::Unix(path.clone());
    let info = info
        .into_connection_info()
        .unwrap()
        .set_redis_settings(login);
    works_as(node, locktopus::redis::from_connection_info(&info), 3).await;
    let config = Config {
        username: Some(USER.to_owned()),
        password: Some(PASSWORD.to_owned()),
        database: Some(3),
        server: ServerConfig::new_unix_socket(&path),
        ..Config::default()
    };
    works_as(node, locktopus::fred::from_config(&config), 3).await;

    for client in CLIENTS {
        let url = format!("redis+unix://{USER}:{PASSWORD}@{path_text}?db=4&client={client}");
        let locks = connect(&url).await;
        lock_once(&locks).await;
        let keys = node.info("keyspace", "db4").await.unwrap();
        assert!(keys.is_some(), "nothing was written to database 4");
        close(locks).await;
        let nobody = format!("unix://{path_text}.not?client={client}");
        let error = locktopus::connect(&nobody).await.unwrap_err();
        assert!(error.to_string().contains(".sock.not"), "{error}");
    }
    drop(place);
    let _ = std::fs::remove_file(path);
}
