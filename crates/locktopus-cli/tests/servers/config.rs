//! The sources of the URL, secrets that stay hidden, and exit codes of errors.

use crate::usual::{TestBed, ended, words};

#[tokio::test]
async fn config_shows_sources_and_no_password() {
    let bed = TestBed::without_servers();
    let mut command = bed.bare(&["config"]);
    command.env(
        "LOCKTOPUS_URL",
        "redis-sentinel://app:s3cret@db:6379/m?sentinel_password=s3cret",
    );
    let ran = ended(command).await.ok();
    assert!(ran.out.contains("redis-sentinel://***@db:6379"), "{ran:?}");
    assert!(ran.out.contains("environment LOCKTOPUS_URL"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");

    std::fs::write(bed.room().join("locktopus.toml"), "url = \"memory:file\"").unwrap();
    let ran = ended(bed.bare(&["config"])).await.ok();
    assert!(
        ran.out.contains("memory:file  (file locktopus.toml)"),
        "{ran:?}"
    );
    assert!(ran.err.contains("can be read by others"), "{ran:?}");
    let ran = ended(bed.bare(&["config", "--url", "memory:flag", "--format", "json"]))
        .await
        .ok();
    assert!(
        ran.out
            .starts_with("{\"url\":{\"value\":[\"memory:flag\"],\"source\":\"--url\"}"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn each_error_has_its_code() {
    let bed = TestBed::without_servers();
    for (line, code) in [
        ("status a", 78),
        ("--url nonsense://x status a", 78),
        ("--config absent.toml config", 78),
        ("--url redis://127.0.0.1:1?timeout=100ms status a", 69),
        // An empty name.
        ("--url memory: status ", 2),
        ("--url memory: status a --kind queue", 2),
        ("--url memory: status a --kind lock --profile redsync", 2),
        ("--url memory: status a", 0),
    ] {
        let ran = ended(bed.bare(&words(line))).await;
        assert_eq!(ran.code, code, "{line}: {ran:?}");
    }
}

/// The fact once, and the remedy.
#[tokio::test]
async fn servers_that_are_away_are_one_short_line() {
    let bed = TestBed::without_servers();
    for client in ["redis", "fred"] {
        for (url, at) in [
            ("redis://127.0.0.1:1", ""),
            ("redis-sentinel://127.0.0.1:1/m", "127.0.0.1:1: "),
            ("redis-cluster://127.0.0.1:1", "127.0.0.1:1: "),
        ] {
            let url = format!("{url}?client={client}");
            let ran = ended(bed.bare(&["--url", &url, "status", "a"])).await;
            let at = at.replace(
                "127",
                if client == "fred" && url.contains("sentinel") {
                    "sentinel 127"
                } else {
                    "127"
                },
            );
            let said = format!(
                "locktopus: error: cannot connect to {url}: {at}Connection refused (os error 111); check the address, and that \
                 the server is running\n"
            );
            assert_eq!((ran.code, ran.err), (69, said));
        }
    }
}

#[tokio::test]
async fn a_refused_login_and_a_missing_right_differ_and_show_nothing() {
    let bed = TestBed::new().await;
    let url = bed.url().replacen("://", "://weak:s3cret@", 1) + "&checks=off";
    let arguments = ["--url", &url, "--format", "json", "status", "a"];
    let refused = ended(bed.bare(&arguments)).await;
    assert_eq!(refused.code, 69, "{refused:?}");
    let words = [
        "ACL", "SETUSER", "weak", "on", ">s3cret", "-@all", "+ping", "~*",
    ];
    bed.node().command(&words).await.unwrap();
    let denied = ended(bed.bare(&arguments)).await;
    assert_eq!(denied.code, 77, "{denied:?}");
    assert!(denied.err.contains("\"kind\":\"denied\""), "{denied:?}");
    assert!(denied.err.contains("locktopus doctor --acl"), "{denied:?}");
    assert!(
        refused.err.contains("check the user and the password"),
        "{refused:?}"
    );
    assert!(!format!("{refused:?}{denied:?}").contains("s3cret"));
}

/// Connection strings of other libraries, in place of a URL.
#[tokio::test]
async fn no_key_of_a_foreign_connection_string_is_shown() {
    for text in [
        "h:6380,password=s3cret,ssl=True,abortConnect=False",
        "redis://h:6380,password=s3cret",
        "redis-sentinel://h/mymaster;password=s3cret",
        "redis://h:6379/0#s3cret",
        "redis://h?s3cret",
        "redis://h?namespace=app;password=s3cret",
        "memory:h;AccountKey=s3cret",
        "Endpoint=sb://h/;SharedAccessKeyName=Root;SharedAccessKey=s3cret",
        "jdbc:redis://h:6379/0?user=u&password=s3cret",
        "host=h port=6379 password=s3cret",
    ] {
        let bed = TestBed::without_servers();
        for arguments in [&["config"][..], &["ls"], &["doctor"], &["status", "a"]] {
            let with_flag = [&["--url", text], arguments].concat();
            let by_flag = ended(bed.bare(&with_flag)).await;
            let mut by_variable = bed.bare(arguments);
            by_variable.env("LOCKTOPUS_URL", text);
            let by_variable = ended(by_variable).await;
            let file = format!("url = {text:?}");
            std::fs::write(bed.room().join("locktopus.toml"), file).unwrap();
            let by_file = ended(bed.bare(arguments)).await;
            for ran in [by_flag, by_variable, by_file] {
                assert_ne!(ran.code, 0, "{ran:?}");
                assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
            }
        }
    }
}

/// The same in other arguments.
#[tokio::test]
async fn no_key_is_shown_where_no_url_belongs() {
    let bed = TestBed::without_servers();
    for text in [
        "h:6380,password=S3cretS3cret,ssl=True",
        "redis://app:S3cretS3cret@h:6379/0",
        "Endpoint=sb://h/;SharedAccessKey=S3cretS3cret",
        "S3cretS3cretS3cretS3cretS3cretS3cret+4Q=",
        "host=h password=S3cretS3cret",
    ] {
        let option = format!("--{text}");
        for arguments in [
            &[text][..],
            &[text, "ls"],
            &["latch", text],
            &["help", text],
            &["ls", "a", text],
            &["--format", text, "ls"],
            &["--format", "json", text],
            &["--config", text, "ls"],
            &["status", "a", "--kind", text],
            &["status", "a", "--profile", text],
            &["run", "a", "--lease", text, "--", "true"],
            &["run", "a", "--permits", text, "--", "true"],
            &["semaphore", "init", "a", text],
            &["completions", text],
            &["failover", "watch", "--names", text],
            &["ls", &option],
        ] {
            let ran = ended(bed.bare(arguments)).await;
            assert!([2, 78].contains(&ran.code), "{arguments:?}: {ran:?}");
            assert!(!format!("{ran:?}").contains("S3cret"), "{ran:?}");
        }
    }
    let ran = ended(bed.bare(&["statsu", "a"])).await;
    assert!(ran.err.contains("'statsu'"), "{ran:?}");
}

/// For any error, however JSON was requested.
#[tokio::test]
async fn every_error_is_a_line_of_json_where_that_was_asked_for() {
    let bed = TestBed::without_servers();
    for (arguments, code) in [
        (&["statsu"][..], 2),
        (&["ls", "a", "b"], 2),
        (&["lock", "a"], 2),
        (&["latch"], 2),
        (&["run", "a", "--lease", "soon", "--", "true"], 2),
        (&["status", "a"], 78),
        (&["--config", "absent.toml", "ls"], 78),
        (&["--url", "nonsense://x", "ls"], 78),
        (&["--url", "memory:", "status", ""], 2),
    ] {
        let by_flag = bed.bare(&[&["--format", "json"], arguments].concat());
        let in_one = bed.bare(&[&["--format=json"], arguments].concat());
        let mut by_variable = bed.bare(arguments);
        by_variable.env("LOCKTOPUS_FORMAT", "json");
        for command in [by_flag, in_one, by_variable] {
            let ran = ended(command).await;
            let begins = format!("{{\"error\":{{\"code\":{code},\"kind\":");
            assert!(
                ran.code == code && ran.err.starts_with(&begins) && ran.err.lines().count() == 1,
                "{arguments:?}: {ran:?}"
            );
        }
    }
    // Arguments after `--` belong to the program.
    let foreign = ["run", "--", "true", "--format", "json"];
    let ran = ended(bed.bare(&foreign)).await;
    assert!(ran.code == 2 && ran.err.starts_with("error: "), "{ran:?}");
}

#[tokio::test]
async fn no_colours_where_nobody_sees_them() {
    let bed = TestBed::without_servers();
    let ran = ended(bed.bare(&["--url", "memory:", "status", "a"]))
        .await
        .ok();
    assert_eq!(ran.out, "lock \"a\" is free\n");
}
