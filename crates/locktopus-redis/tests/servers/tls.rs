//! Encrypted connections. Without the feature, the error names it.

use crate::common;

use common::*;
use locktopus_protocol::TlsOptions;
use locktopus_redis::ConnectError;
use locktopus_servers::topology::TopologyKind;

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn the_missing_feature_is_named() {
    let servers = servers(TopologyKind::Standalone).await;
    let mut options = options(&servers);
    options.tls = Some(TlsOptions::default());
    let error = locktopus_redis::connect(&options).await.unwrap_err();
    assert_eq!(error, ConnectError::TlsNotBuiltIn);
}

#[cfg(feature = "tls")]
mod enabled {
    use std::path::PathBuf;
    use std::time::Duration;

    use locktopus_protocol::{ChannelFlavour, RedisClient};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn certificates_are_checked() {
        let servers = servers(TopologyKind::Tls).await;
        let files = servers.tls().unwrap();
        let mut options = options(&servers);
        // A handshake may be slow on a busy machine.
        options.connect_timeout = Duration::from_secs(5);

        options.tls = Some(TlsOptions {
            ca_file: Some(files.ca.clone()),
            ..TlsOptions::default()
        });
        let client = locktopus_redis::connect(&options).await.unwrap();
        assert_eq!(
            call(&client, "k", &["SET", "k", "1"]).await,
            Ok(bytes("OK"))
        );
        let mut events = client.take_events().unwrap();
        client
            .subscribe(&[channel("c", ChannelFlavour::Plain)])
            .await
            .unwrap();
        call(&client, "c", &["PUBLISH", "c", "1"]).await.unwrap();
        hear_all(&mut events, &["c".to_owned()]).await;

        // The system does not know this authority.
        options.tls = Some(TlsOptions::default());
        let error = locktopus_redis::connect(&options)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("certificate"), "{error}");

        options.tls = Some(TlsOptions {
            danger_accept_invalid_certs: true,
            ..TlsOptions::default()
        });
        let client = locktopus_redis::connect(&options).await.unwrap();
        assert_eq!(call(&client, "k", &["GET", "k"]).await, Ok(bytes("1")));

        // Plain text to an encrypted port fails instead of hanging.
        options.tls = None;
        locktopus_redis::connect(&options).await.unwrap_err();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_missing_file_is_named() {
        let servers = servers(TopologyKind::Standalone).await;
        let mut options = options(&servers);
        let ca_file = Some(PathBuf::from("no-such-file.pem"));
        options.tls = Some(TlsOptions {
            ca_file,
            ..TlsOptions::default()
        });
        let error = locktopus_redis::connect(&options).await.unwrap_err();
        assert!(
            matches!(&error, ConnectError::Tls(why) if why.contains("no-such-file.pem")),
            "{error}"
        );
    }
}
