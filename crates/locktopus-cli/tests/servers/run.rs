//! `run` when nothing goes wrong with the lock.

use crate::usual::{Place, finished, runs, signal, words};

#[tokio::test]
async fn the_status_is_the_programs() {
    let place = Place::new().await;
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("exit 75", 75),
    ] {
        let ran = finished(place.script(&["--name", "a"], script)).await;
        assert_eq!(ran.code, code, "{script}: {ran:?}");
    }
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126)] {
        let ran = place
            .ran(&["-q", "run", "--name", "a", "--", program])
            .await;
        assert_eq!(ran.code, code, "{ran:?}");
    }
    place.free("a").await;
}

#[tokio::test]
async fn the_program_knows_its_lock() {
    let place = Place::new().await;
    let said = "echo $LOCKTOPUS_NAME ${LOCKTOPUS_TOKEN:-none}";
    let first = finished(place.script(&["--name", "a"], said))
        .await
        .ok()
        .out;
    let second = finished(place.script(&["--name", "a"], said))
        .await
        .ok()
        .out;
    let token = |out: &str| {
        out.trim()
            .strip_prefix("a ")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    assert!(token(&second) > token(&first));
    // Read locks have no token, and the program does not inherit an outer one.
    let line = words("-q run --name b --kind read_lock -- sh -c");
    let mut command = place.command(&[&line[..], &[said]].concat());
    let child = command.env("LOCKTOPUS_TOKEN", "5").spawn().unwrap();
    assert_eq!(finished(child).await.ok().out, "b none\n");
}

#[tokio::test]
async fn busy_is_told_or_skipped() {
    let place = Place::new().await;
    let mut holder = place.script(&["--name", "a"], "echo $$ >pid; exec sleep 60");
    let pid = place.pid("pid").await;
    let ran = place
        .ran(&["run", "--name", "a", "--wait", "50ms", "--", "true"])
        .await;
    assert_eq!(ran.code, 75, "{ran:?}");
    assert!(ran.err.contains("held by owner#"), "{ran:?}");
    let ran = place.does("run --name a --skip-if-held -- touch ran").await;
    assert!(ran.err.contains("skipped"), "{ran:?}");
    let ran = place
        .does("-q run --name a --skip-if-held -- touch ran")
        .await;
    assert_eq!(ran.err, "");
    assert!(!place.room().join("ran").exists());
    signal("TERM", holder.id().unwrap()).await;
    assert_eq!(holder.wait().await.unwrap().code(), Some(143));
    assert!(!runs(pid));
}

#[tokio::test]
async fn a_wait_can_be_interrupted() {
    let place = Place::new().await;
    let _holder = place.script(&["--name", "a"], "echo $$ >pid; exec sleep 60");
    place.pid("pid").await;
    let waiting = place
        .command(&["run", "--name", "a", "--", "true"])
        .spawn()
        .unwrap();
    crate::usual::eventually("a waiter", async || {
        let ran = place.ran(&["-q", "--format", "json", "status", "a"]).await;
        ran.out.contains("\"waiters\":[{").then_some(())
    })
    .await;
    signal("INT", waiting.id().unwrap()).await;
    assert_eq!(finished(waiting).await.code, 130);
    let ran = place.does("-q --format json status a").await;
    assert!(
        ran.out.contains("\"waiters\":[]"),
        "its place is given up: {ran:?}"
    );
}

#[tokio::test]
async fn signals_are_passed_on() {
    let place = Place::new().await;
    let script = "trap 'echo usr1; echo $$ >told' USR1; trap 'exit 42' INT; echo $$ >pid; \
                  while :; do sleep 0.05; done";
    let child = place.script(&["--name", "a"], script);
    place.pid("pid").await;
    signal("USR1", child.id().unwrap()).await;
    // A shell that finds both signals handles the interruption first: its number is lower.
    place.pid("told").await;
    signal("INT", child.id().unwrap()).await;
    let ran = finished(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (42, "usr1\n"), "{ran:?}");
    assert_eq!(
        place.ran(&["-q", "status", "a", "--check"]).await.code,
        0,
        "given back"
    );
}

#[tokio::test]
async fn what_was_ignored_stays_ignored() {
    let place = Place::new().await;
    let own = env!("CARGO_BIN_EXE_locktopus");
    let script = format!(
        "trap '' HUP; exec {own} -q run --name a -- \
         sh -c 'echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done; exit 9'"
    );
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args(["-c", &script])
        .env("LOCKTOPUS_URL", place.url());
    shell.current_dir(place.room()).kill_on_drop(true);
    let mut child = shell.spawn().unwrap();
    place.pid("pid").await;
    signal("HUP", child.id().unwrap()).await;
    std::fs::write(place.room().join("go"), "").unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(9));
}

#[tokio::test]
async fn what_is_left_running_ends_before_the_lock_does() {
    let place = Place::new().await;
    let script = "sh -c 'trap \"\" TERM; echo $$ >new; mv new pid; while :; do sleep 0.05; done' & \
                  while [ ! -e pid ]; do sleep 0.01; done; exit 3";
    let ran = finished(place.script(&["--name", "a", "--lease", "6s"], script)).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!runs(place.pid("pid").await));
}

#[tokio::test]
async fn what_ends_early_is_not_run_again() {
    let place = Place::new().await;
    let options = ["--name", "a", "--skip-if-held", "--at-least", "10m"];
    for round in ["first", "second"] {
        let ran = finished(place.script(&options, "echo ran >>log")).await;
        assert_eq!(ran.code, 0, "{round}: {ran:?}");
    }
    let log = std::fs::read_to_string(place.room().join("log")).unwrap();
    assert_eq!(log, "ran\n");
}

#[tokio::test]
async fn what_cannot_end_in_time_is_refused() {
    let place = Place::new().await;
    for options in [
        &["--lease", "2s"][..],
        &["--lease", "30s", "--grace", "10s"],
        &["--lease", "30s", "--max-hold", "5s"],
        &["--grace", "10s"],
        &["--permits", "2"],
        &["--kind", "read_lock", "--at-least", "1s"],
    ] {
        let options = [&["--name", "a"], options].concat();
        let ran = finished(place.script(&options, "touch ran")).await;
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
    }
    assert!(!place.room().join("ran").exists());
}

#[tokio::test]
async fn the_name_stands_alone_or_behind_an_option() {
    let place = Place::new().await;
    for name in [
        &["a"][..],
        &["--name", "a"],
        &["--wait", "5s", "a"],
        &["a", "--wait", "5s"],
    ] {
        let ran = finished(place.script(name, "echo $LOCKTOPUS_NAME")).await;
        assert_eq!(ran.ok().out, "a\n", "{name:?}");
    }
    for wrong in [
        &["run", "--", "true"][..],
        &["run", "a", "--name", "b", "--", "true"],
    ] {
        let ran = place.ran(wrong).await;
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
    }
    let leader = place.ran(&["-q", "leader", "a", "--", "true"]).await;
    assert_eq!(leader.code, 0, "{leader:?}");
}

/// The options are checked against the configured lease, before connecting.
#[tokio::test]
async fn times_are_judged_before_anything_is_sent() {
    let place = Place::without_servers();
    let nobody = "redis://127.0.0.1:1?connect_timeout=1s";
    let code = async |url: &str, options: &[&str]| {
        let run = [&["--url", url, "run", "a"], options, &["--", "true"]].concat();
        crate::usual::ended(place.bare(&run)).await.code
    };
    let short = format!("{nobody}&renewed_lease=6s");
    for (url, options, expected) in [
        (nobody, &["--lease", "2s"][..], 2),
        (nobody, &["--grace", "10s"], 2),
        (nobody, &["--max-hold", "5s"], 2),
        (&*short, &["--grace", "2s"], 2),
        (&*short, &["--lease", "30s", "--grace", "2s"], 69),
        (nobody, &["--grace", "9.2s"], 69),
        (nobody, &["--grace", "200ms", "--max-hold", "2s"], 69),
    ] {
        assert_eq!(code(url, options).await, expected, "{options:?}");
    }
    let leader = [
        "--url", nobody, "leader", "a", "--grace", "10s", "--", "true",
    ];
    assert_eq!(crate::usual::ended(place.bare(&leader)).await.code, 2);
}

/// What is left of a lease after a hand-off does not matter.
#[tokio::test]
async fn a_lease_that_was_handed_over_is_as_long_as_any() {
    let place = Place::new().await;
    let mut holder = place.script(
        &["a"],
        "echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done",
    );
    place.pid("pid").await;
    let next = place.script(&["a", "--grace", "9.2s"], "exit 9");
    crate::usual::eventually("a waiter", async || {
        let ran = place.ran(&["-q", "--format", "json", "status", "a"]).await;
        ran.out.contains("\"waiters\":[{").then_some(())
    })
    .await;
    std::fs::write(place.room().join("go"), "").unwrap();
    assert!(holder.wait().await.unwrap().success());
    assert_eq!(finished(next).await.code, 9);
    let held = place.script(&["a", "--grace", "200ms", "--max-hold", "2s"], "exit 9");
    assert_eq!(finished(held).await.code, 9);
}
