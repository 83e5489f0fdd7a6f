use std::time::Duration;

use locktopus_core::{NameEncoding, ReplicaNeed, SafetyMode};

use super::*;

fn parse(text: &str) -> BackendUrl {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn hosts(url: &BackendUrl) -> Vec<String> {
    let Endpoint::Servers { authority, .. } = &url.endpoint else {
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
    assert!(parse("memory:").endpoint == Endpoint::Memory { name: None });
    assert!(
        parse("memory:a").endpoint
            == Endpoint::Memory {
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
    let Endpoint::Servers { tls, topology, .. } =
        parse("rediss-sentinel://a/m/4?ca=/x.pem").endpoint
    else {
        panic!()
    };
    assert!(
        tls && topology
            == Topology::Sentinel {
                master_name: "m".into(),
                database: 4
            }
    );
}

#[test]
fn sockets() {
    for scheme in ["unix", "redis+unix", "valkey+unix"] {
        let url = parse(&format!(
            "{scheme}://app:p%2Fss@/run/my%20redis.sock?db=3&client=fred"
        ));
        assert_eq!(hosts(&url), ["/run/my redis.sock 0"]);
        let Endpoint::Servers {
            tls: false,
            authority,
            topology,
        } = &url.endpoint
        else {
            panic!("{url}")
        };
        assert!(*topology == Topology::Standalone { database: 3 }, "{url}");
        assert_eq!(authority.username.as_deref(), Some("app"));
        assert_eq!(authority.password.as_deref(), Some("p/ss"));
    }
    let plain = parse("unix:///s");
    assert_eq!(hosts(&plain), ["/s 0"]);
    assert!(matches!(
        plain.endpoint,
        Endpoint::Servers {
            topology: Topology::Standalone { database: 0 },
            ..
        }
    ));
}

#[test]
fn tls_of_servers_and_of_sentinels() {
    let url = parse(
        "rediss-sentinel://h/m?ca=/a&tls_server_name=locks&sentinel_ca=/b&sentinel_tls_server_name=watch\
         &sentinel_danger_accept_invalid_certs=true&sentinel_cert=/c&sentinel_key=/k",
    );
    let options = &url.options;
    assert_eq!(options.tls.ca.as_deref(), Some("/a".as_ref()));
    assert_eq!(options.tls.server_name.as_deref(), Some("locks"));
    let own = &options.sentinel_tls.own;
    assert_eq!(own.ca.as_deref(), Some("/b".as_ref()));
    assert_eq!(own.server_name.as_deref(), Some("watch"));
    assert!(own.danger_accept_invalid_certs && own.cert.is_some() && own.key.is_some());
    assert!(options.sentinel_tls.differ());
    assert!(
        !parse("rediss-sentinel://h/m?ca=/a")
            .options
            .sentinel_tls
            .differ()
    );
    let on = parse("redis-sentinel://h/m?sentinel_tls=on");
    assert_eq!(on.options.sentinel_tls.wanted, Some(true));
}

#[test]
fn names_of_any_bytes_are_asked_for() {
    assert_eq!(parse("memory:").options.names, NameEncoding::Plain);
    let url = parse("memory:?names=escaped&namespace=a:");
    assert_eq!(url.options.names, NameEncoding::Escaped);
}

#[test]
fn logins_are_decoded_and_never_shown() {
    let url = parse(
        "redis://us%40er:p%3Ass@h?sentinel%5Fpassword=x"
            .split('?')
            .next()
            .unwrap(),
    );
    let Endpoint::Servers { authority, .. } = &url.endpoint else {
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
        // URLs with an error, whose message must not show the login either.
        "redis://u:s3cret@h:port",
        "redis://u:s3cret@h?nonsense=1",
        "nonsense://u:s3cret@h",
        "redis://s3cret@",
        "redis://h?sentinel_password=s3cret&sentinel_password=s3cret",
        "redis://u:s3?cret@h",
        "redis-sentinel://app:1/s3cret@db",
        "redis-sentinel://a,b/m?sentinel_pass=s3cret",
        "redis-sentinel://a,b/m?sentinel_pasword=s3cret",
        "redis-sentinel://a,b/m?SENTINEL_PASSWORD=x&s3cret=1",
        "redis://u:s3cret",
        "u:s3cret@h",
        "redis+unix://u:s3cret@/run/s",
        "redis+unix://u:s3cret/run/s",
        "unix://u:s3cret@h/run/s?db=3",
        "unix:///run/s?pass=s3cret",
    ] {
        let shown = match text.parse::<BackendUrl>() {
            Ok(url) => format!("{url} {url:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains("s3c"), "{shown}");
    }
}

#[test]
fn errors_say_which_part_is_wrong() {
    for (text, named) in [
        ("", "no scheme"),
        ("localhost", "no scheme"),
        ("localhost:6379", "no scheme"),
        ("app:secret@localhost", "no scheme"),
        (
            "lockfile:/tmp/x",
            "no scheme that is known; write memory:, redis://HOST",
        ),
        ("redis:localhost", "two slashes"),
        ("redis:/localhost", "two slashes"),
        ("rediss:/app:secret@localhost", "write rediss://"),
        ("redis-sentinel:a,b/master", "two slashes"),
        ("redis:6379", "no scheme"),
        ("memroy:", "Known are memory, redis,"),
        ("http://h", "no scheme that is known"),
        ("redis://", "has no host"),
        ("redis://h:0", "\"redis://***\": the address has a port"),
        ("redis-sentinel://h,h:99999/m", "address 2 of 2 has a port"),
        ("redis://::1", "brackets"),
        ("redis://[::1", "closing bracket"),
        ("redis://h h", "a character in it that no host name has"),
        ("redis://a,b", "redis-cluster"),
        (
            "redis://h/x",
            "\"redis://h***\": the database is not a number",
        ),
        ("redis-sentinel://h", "mymaster"),
        ("redis-cluster://h/2", "database 0"),
        ("redis://user@h", "USER:PASSWORD"),
        (
            "redis://h?client=ioredis",
            "option \"client\" must be redis or fred",
        ),
        (
            "redis://h?timeout=soon",
            "option \"timeout\" must be a duration",
        ),
        (
            "redis://h?timeout=100000000000d",
            "option \"timeout\" must be at most 1h",
        ),
        (
            "redis://h?connect_timeout=99999999999999999999s",
            "connect_timeout",
        ),
        ("redis://h?renewed_lease=4000d", "must be at most 3650 days"),
        (
            "redis://h?renewed_lease=1M",
            "option \"renewed_lease\" must not be in months or years; m is minutes",
        ),
        ("redis://h?timeout=5y", "must not be in months"),
        ("redis://h?timeout=5sec", "the units ms, s, m, h and d"),
        ("redis://h?timeout=-1s", "must not be negative"),
        (
            "redis://h?token_retention=1s",
            "option \"token_retention\" must be between",
        ),
        ("redis://h/4294967296", "database"),
        ("redis://app:s3?cret@h", "%3F"),
        ("redis-sentinel://app:1/s3cret@db", "%2F"),
        (
            "redis-sentinel://a/m?sentinel_pass=x",
            "option \"sentinel_pass\" is unknown; see the table of URL options. Did you mean \"sentinel_password\"?",
        ),
        (
            "redis-sentinel://a/m?sentinel_password=x&y=1",
            "write & as %26",
        ),
        ("redis://h?timeout=0s", "longer than zero"),
        (
            "redis://h?timeout=1s&timeot=1s",
            "\"redis://h?timeout=1s***\": option \"timeot\" is unknown; see the table of URL options. Did you mean \"timeout\"?",
        ),
        (
            "redis://h?nonsense=1",
            "option \"nonsense\" is unknown; see the table",
        ),
        // Perhaps pieces of a password.
        ("redis://h?secret", "option number 1 is unknown"),
        ("redis://h?a=b;password=c", "option number 1 is unknown"),
        ("rediss://h?cert=a&key=b&c=d", "option number 3 is unknown"),
        ("redis://h?timeout=1s&timeout=2s", "twice"),
        ("redis://h?ca=/x", "rediss"),
        ("redis://h?tls_server_name=locks", "rediss"),
        ("rediss://h?tls_server_name=", "must be a host name"),
        ("rediss://h?sentinel_ca=/x", "without sentinels"),
        ("rediss://h?sentinel_tls=off", "without sentinels"),
        ("rediss-sentinel://h/m?sentinel_tls=maybe", "on or off"),
        (
            "rediss-sentinel://h/m?sentinel_tls=off&sentinel_ca=/x",
            "sentinel_tls=off leaves",
        ),
        (
            "rediss-sentinel://h/m?sentinel_key=/x",
            "\"sentinel_cert\" and \"sentinel_key\"",
        ),
        (
            "redis://h?names=odd",
            "option \"names\" must be plain or escaped",
        ),
        ("redis-cluster://h?router=mine", "own or client"),
        ("redis://h?router=client", "without a cluster"),
        ("redis-cluster://h?client=fred&router=client", "client=fred"),
        ("redis://h?db=3", "redis://HOST/3"),
        ("redis+unix:///s?db=x", "option \"db\" must be a number"),
        ("redis+unix://", "absolute path"),
        ("redis+unix:///", "absolute path"),
        ("redis+unix://h/run/s", "a host stands where"),
        ("redis+unix://h/run/s?ca=/x", "a host stands where"),
        ("redis+unix:///run/s?ca=/x", "rediss"),
        ("rediss+unix:///run/s", "no scheme that is known"),
        ("redis+unix:///run/%00", "absolute path"),
        ("redis://h?connect=later", "now or lazy"),
        ("redis://h?connect=lazy&checks=refuse", "cannot be checked"),
        ("rediss://h?cert=/x", "together"),
        ("redis://h?sentinel_password=x", "without sentinels"),
        ("memory:?client=redis", "memory:"),
        ("memory:a@b", "%40"),
        ("memory:?safety=quarantine", "\"safety\""),
        ("redis://h?safety=safe", "option \"safety\" must be plain"),
        ("redis://h?safety=quorum", "several servers"),
        (
            "redis://h?safety=replicated&replicas=2",
            "option \"replicas\" must be one",
        ),
        ("redis://h?replicas=one", "safety=replicated"),
        (
            "redis://h?safety=quarantine&replication_timeout=1s",
            "\"replication_timeout\"",
        ),
        (
            "redis://h?safety=replicated&quarantine_max_lease=1s",
            "safety=quarantine",
        ),
        (
            "redis://h?safety=replicated&replication_timeout=1s",
            "replication_timeout=1s",
        ),
        (
            "redis://h?safety=replicated&replication_timeout=0s",
            "longer than zero",
        ),
        (
            "redis://h?safety=quarantine&quarantine_max_lease=5ms",
            "20ms",
        ),
        (
            "redis://h?safety=quarantine&quarantine_max_lease=10s&renewed_lease=20s",
            "quarantine_max_lease=10s",
        ),
    ] {
        let error = text.parse::<BackendUrl>().unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

/// Only percent-encoding counts: turning a `+` into a space, as forms do, would change a password.
#[test]
fn a_plus_is_a_plus() {
    let url = parse("redis-sentinel://u:a+b@h/m?sentinel_password=a+b%20c%2B&client_name=x+y");
    assert_eq!(url.options.sentinel_password.as_deref(), Some("a+b c+"));
    assert_eq!(url.options.client_name.as_deref(), Some("x+y"));
    let Endpoint::Servers { authority, .. } = &url.endpoint else {
        panic!()
    };
    assert_eq!(authority.password.as_deref(), Some("a+b"));
    let error = "redis://h?client_name=%FF".parse::<BackendUrl>();
    assert!(error.unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn every_option_of_the_table_is_known() {
    let manual = include_str!("../../url.rs");
    let names: Vec<&str> = manual
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split_once(" | "))
        .flat_map(|(names, _)| names.trim_end_matches('`').split("`, `"))
        .filter(|name| !name.contains(':'))
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let error = format!("redis://h?{name}=%FF").parse::<BackendUrl>();
        let error = error.unwrap_err().to_string();
        assert!(!error.contains("unknown"), "{name}: {error}");
    }
}

#[test]
fn safety_modes() {
    let mode = |text: &str| parse(text).options.safety;
    let replicated = |need, millis| SafetyMode::Replicated {
        need,
        timeout: Duration::from_millis(millis),
    };
    let quarantine = |seconds| SafetyMode::Quarantine {
        max_lease: Duration::from_secs(seconds),
    };
    for (text, expected) in [
        ("redis://h", SafetyMode::Plain),
        ("redis://h?safety=plain", SafetyMode::Plain),
        (
            "redis://h?safety=replicated",
            replicated(ReplicaNeed::Majority, 500),
        ),
        (
            "redis://h?timeout=200ms&safety=replicated",
            replicated(ReplicaNeed::Majority, 100),
        ),
        (
            "redis://h?replicas=all&safety=replicated&replication_timeout=80ms",
            replicated(ReplicaNeed::All, 80),
        ),
        ("redis-cluster://h?safety=quarantine", quarantine(30)),
        (
            "redis://h?safety=quarantine&quarantine_max_lease=5s&renewed_lease=5s",
            quarantine(5),
        ),
    ] {
        assert_eq!(mode(text), expected, "{text}");
    }
}
