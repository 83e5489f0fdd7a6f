use super::*;

fn parse(text: &str) -> BackendUrl {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn hosts(url: &BackendUrl) -> Vec<String> {
    let Place::Servers { authority, .. } = &url.place else {
        panic!("no servers")
    };
    authority
        .hosts
        .iter()
        .map(|(host, port)| format!("{host} {port}"))
        .collect()
}

#[test]
fn every_form_of_the_table() {
    assert!(parse("memory:").place == Place::Memory { name: None });
    assert!(
        parse("memory:a").place
            == Place::Memory {
                name: Some("a".into())
            }
    );
    assert_eq!(hosts(&parse("redis://h")), ["h 6379"]);
    assert_eq!(hosts(&parse("redis://[::1]:7000/3")), ["::1 7000"]);
    assert_eq!(hosts(&parse("valkey://127.0.0.1")), ["127.0.0.1 6379"]);
    assert_eq!(
        hosts(&parse("redis-sentinel://a,b:1/m")),
        ["a 26379", "b 1"]
    );
    assert_eq!(hosts(&parse("rediss-cluster://a,b")), ["a 6379", "b 6379"]);
    let Place::Servers { tls, shape, .. } = parse("rediss-sentinel://a/m/4?ca=/x.pem").place else {
        panic!()
    };
    assert!(
        tls && shape
            == Shape::Sentinel {
                master_name: "m".into(),
                database: 4
            }
    );
}

#[test]
fn logins_are_decoded_and_never_shown() {
    let url = parse(
        "redis://us%40er:p%3Ass@h?sentinel%5Fpassword=x"
            .split('?')
            .next()
            .unwrap(),
    );
    let Place::Servers { authority, .. } = &url.place else {
        panic!()
    };
    assert_eq!(authority.username.as_deref(), Some("us@er"));
    assert_eq!(authority.password.as_deref(), Some("p:ss"));
    for text in [
        "redis://u:s3cret@h",
        "redis://:s3cret@h",
        "redis://u:s3c@s3cret@h",
        "redis-sentinel://h/m?sentinel_user=u&sentinel_password=s3cret",
        "redis-sentinel://h/m?sentinel%5Fpassword=s3cret",
        // Wrong in some way: the error must not show it either.
        "redis://u:s3cret@h:port",
        "redis://u:s3cret@h?nonsense=1",
        "nonsense://u:s3cret@h",
        "redis://s3cret@",
        "redis://h?sentinel_password=s3cret&sentinel_password=s3cret",
    ] {
        let shown = match text.parse::<BackendUrl>() {
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains("s3c"), "{shown}");
    }
}

#[test]
fn errors_name_the_input() {
    for (text, named) in [
        ("", "no scheme"),
        ("localhost", "no scheme"),
        ("http://h", "\"http\""),
        ("redis://", "has no host"),
        ("redis://h:0", "\"h:0\""),
        ("redis://h:99999", "\"h:99999\""),
        ("redis://::1", "\"::1\""),
        ("redis://[::1", "\"[::1\""),
        ("redis://h h", "' '"),
        ("redis://a,b", "redis-cluster"),
        ("redis://h/x", "\"x\""),
        ("redis-sentinel://h", "mymaster"),
        ("redis-cluster://h/2", "database 0"),
        ("redis://user@h", "USER:PASSWORD"),
        ("redis://h?client=ioredis", "client=\"ioredis\""),
        ("redis://h?timeout=soon", "timeout=\"soon\""),
        ("redis://h?timeout=0s", "longer than zero"),
        ("redis://h?timeot=1s", "\"timeot\""),
        ("redis://h?timeout=1s&timeout=2s", "twice"),
        ("redis://h?ca=/x", "rediss"),
        ("rediss://h?cert=/x", "together"),
        ("redis://h?sentinel_password=x", "without sentinels"),
        ("memory:?client=redis", "memory:"),
    ] {
        let error = text.parse::<BackendUrl>().unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}
