//! `run` when nothing goes wrong with the lock.

use crate::usual::{TestBed, ended, finished, runs, signal, words};

#[tokio::test]
async fn the_status_is_the_programs() {
    let bed = TestBed::new().await;
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("exit 75", 75),
    ] {
        let ran = finished(bed.script(&["--name", "a"], script)).await;
        assert_eq!(ran.code, code, "{script}: {ran:?}");
    }
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126)] {
        let ran = bed.ran(&["-q", "run", "--name", "a", "--", program]).await;
        assert_eq!(ran.code, code, "{ran:?}");
    }
    bed.free("a").await;
}

#[tokio::test]
async fn the_program_knows_its_lock() {
    let bed = TestBed::new().await;
    let said = "echo $LOCKTOPUS_NAME ${LOCKTOPUS_TOKEN:-none}";
    let first = finished(bed.script(&["--name", "a"], said)).await.ok().out;
    let second = finished(bed.script(&["--name", "a"], said)).await.ok().out;
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
    let mut command = bed.command(&[&line[..], &[said]].concat());
    let child = command.env("LOCKTOPUS_TOKEN", "5").spawn().unwrap();
    assert_eq!(finished(child).await.ok().out, "b none\n");
}

/// Neither the pipe to its guardian nor anything else of the processes that start it.
#[tokio::test]
async fn the_program_inherits_what_it_would_without_a_lock() {
    let bed = TestBed::new().await;
    let said =
        "ls /proc/$$/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; env | grep -v '^_=' | sort";
    let mut alone = tokio::process::Command::new("env");
    alone.args(["--default-signal", "sh", "-c", said]);
    alone
        .current_dir(bed.room())
        .stdin(std::process::Stdio::null());
    alone
        .env("LOCKTOPUS_URL", bed.url())
        .env("XDG_CONFIG_HOME", bed.room());
    let alone = String::from_utf8(alone.output().await.unwrap().stdout).unwrap();
    let ran = finished(bed.script(&["--name", "a"], said)).await.ok().out;
    let own = ["LOCKTOPUS_NAME=", "LOCKTOPUS_RUN_PID=", "LOCKTOPUS_TOKEN="];
    let (told, rest): (Vec<_>, Vec<_>) = ran
        .lines()
        .partition(|line| own.iter().any(|name| line.starts_with(name)));
    assert_eq!(told.len(), own.len(), "{ran}");
    assert_eq!(rest, alone.lines().collect::<Vec<_>>());
}

/// Nothing has run, so `--at-least` has nothing to prevent.
#[tokio::test]
async fn a_program_that_cannot_be_started_keeps_no_lock() {
    let bed = TestBed::new().await;
    let write = "printf '#!/no/such/interpreter\n' >broken; chmod +x broken";
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", write]).current_dir(bed.room());
    assert!(shell.status().await.unwrap().success());
    let line = words("run a --at-least 10m -- ./broken");
    let ran = bed.ran(&line).await;
    assert_eq!(ran.code, 127, "{ran:?}");
    let said = "locktopus: error: cannot start ./broken: No such file or directory (os error 2)\n";
    assert_eq!(ran.err, said);
    let state = bed.ran(&["-q", "status", "a", "--check"]).await;
    assert_eq!(state.code, 0, "{state:?}");
}

/// Nothing is connected: no server is there.
#[tokio::test]
async fn programs_are_looked_up_before_anything_is_sent() {
    let bed = TestBed::without_servers();
    let nobody = "redis://127.0.0.1:1?connect_timeout=1s";
    for command in ["run a --", "leader a --", "job a --every 1h --"] {
        for (program, code, why) in [
            (
                "no-such-program",
                127,
                "No such file or directory (os error 2)",
            ),
            (
                "./no-such-program",
                127,
                "No such file or directory (os error 2)",
            ),
            ("/etc/passwd", 126, "Permission denied (os error 13)"),
            ("/etc", 126, "Permission denied (os error 13)"),
            ("true", 69, ""),
        ] {
            let line = [&["--url", nobody], &words(command)[..], &[program]].concat();
            let ran = ended(bed.bare(&line)).await;
            assert_eq!(ran.code, code, "{line:?}: {ran:?}");
            let said = format!("locktopus: error: cannot start {program}: {why}\n");
            assert!(code == 69 || ran.err == said, "{line:?}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn busy_is_told_or_skipped() {
    let bed = TestBed::new().await;
    let mut holder = bed.script(&["--name", "a"], "echo $$ >pid; exec sleep 60");
    let pid = bed.pid("pid").await;
    let ran = bed
        .ran(&["run", "--name", "a", "--wait", "50ms", "--", "true"])
        .await;
    assert_eq!(ran.code, 75, "{ran:?}");
    assert!(ran.err.contains("held by owner#"), "{ran:?}");
    let ran = bed.does("run --name a --skip-if-held -- touch ran").await;
    assert!(ran.err.contains("skipped"), "{ran:?}");
    let ran = bed
        .does("-q run --name a --skip-if-held -- touch ran")
        .await;
    assert_eq!(ran.err, "");
    assert!(!bed.room().join("ran").exists());
    signal("TERM", holder.id().unwrap()).await;
    assert_eq!(holder.wait().await.unwrap().code(), Some(143));
    assert!(!runs(pid));
}

#[tokio::test]
async fn a_wait_can_be_interrupted() {
    let bed = TestBed::new().await;
    let _holder = bed.script(&["--name", "a"], "echo $$ >pid; exec sleep 60");
    bed.pid("pid").await;
    let waiting = bed
        .command(&["run", "--name", "a", "--", "true"])
        .spawn()
        .unwrap();
    crate::usual::eventually("a waiter", async || {
        let ran = bed.ran(&["-q", "--format", "json", "status", "a"]).await;
        ran.out.contains("\"waiters\":[{").then_some(())
    })
    .await;
    signal("INT", waiting.id().unwrap()).await;
    assert_eq!(finished(waiting).await.code, 130);
    let ran = bed.does("-q --format json status a").await;
    assert!(
        ran.out.contains("\"waiters\":[]"),
        "its place is given up: {ran:?}"
    );
}

#[tokio::test]
async fn signals_are_passed_on() {
    let bed = TestBed::new().await;
    let script = "trap 'echo usr1; echo $$ >told' USR1; trap 'exit 42' INT; echo $$ >pid; \
                  while :; do sleep 0.05; done";
    let child = bed.script(&["--name", "a"], script);
    bed.pid("pid").await;
    signal("USR1", child.id().unwrap()).await;
    // A shell that finds both signals handles the interruption first: its number is lower.
    bed.pid("told").await;
    signal("INT", child.id().unwrap()).await;
    let ran = finished(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (42, "usr1\n"), "{ran:?}");
    assert_eq!(
        bed.ran(&["-q", "status", "a", "--check"]).await.code,
        0,
        "given back"
    );
}

#[tokio::test]
async fn what_was_ignored_stays_ignored() {
    let bed = TestBed::new().await;
    let own = env!("CARGO_BIN_EXE_locktopus");
    let script = format!(
        "trap '' HUP; exec {own} -q run --name a -- \
         sh -c 'echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done; exit 9'"
    );
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", &script]).env("LOCKTOPUS_URL", bed.url());
    shell.current_dir(bed.room()).kill_on_drop(true);
    let mut child = shell.spawn().unwrap();
    bed.pid("pid").await;
    signal("HUP", child.id().unwrap()).await;
    std::fs::write(bed.room().join("go"), "").unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(9));
}

#[tokio::test]
async fn what_is_left_running_ends_before_the_lock_does() {
    let bed = TestBed::new().await;
    let script = "sh -c 'trap \"\" TERM; echo $$ >new; mv new pid; while :; do sleep 0.05; done' & \
                  while [ ! -e pid ]; do sleep 0.01; done; exit 3";
    let ran = finished(bed.script(&["--name", "a", "--lease", "6s"], script)).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!runs(bed.pid("pid").await));
}

/// They got the signal as the program did, and some need longer.
#[tokio::test]
async fn what_ends_by_the_signal_was_not_left_running() {
    let bed = TestBed::new().await;
    let script = "sh -c 'trap \"touch asked; sleep 0.2; touch tidied; exit\" TERM; echo $$ >new; \
                  mv new pid; while :; do sleep 0.05; done' & sleep 60";
    let line = ["run", "a", "--", "sh", "-c", script];
    let child = bed.command(&line).spawn().unwrap();
    bed.pid("pid").await;
    signal("TERM", child.id().unwrap()).await;
    let ran = finished(child).await;
    assert_eq!(ran.code, 143, "{ran:?}");
    assert!(!ran.err.contains("left processes"), "{ran:?}");
    assert!(bed.room().join("tidied").exists());
}

#[tokio::test]
async fn what_ends_early_is_not_run_again() {
    let bed = TestBed::new().await;
    let options = words("--name a --skip-if-held --at-least 10m --label nightly");
    for round in ["first", "second"] {
        let ran = finished(bed.script(&options, "echo ran >>log")).await;
        assert_eq!(ran.code, 0, "{round}: {ran:?}");
    }
    let log = std::fs::read_to_string(bed.room().join("log")).unwrap();
    assert_eq!(log, "ran\n");
    let state = bed.does("-q status a").await.out;
    assert!(state.contains(", released, and kept by its minimum hold time (--at-least) for 9m"));
    assert!(state.contains("\n    released by nightly on "), "{state}");
    assert!(
        state.ends_with("; the holder's own may be lower\n"),
        "{state}"
    );
    let owner = state.split("held by ").nth(1).unwrap();
    bed.does(&format!(
        "-q break a --reason test --owner {}",
        &owner[..14]
    ))
    .await;
    bed.free("a").await;
}

#[tokio::test]
async fn what_cannot_end_in_time_is_refused() {
    let bed = TestBed::new().await;
    for options in [
        &["--lease", "2s"][..],
        &["--lease", "30s", "--grace", "10s"],
        &["--lease", "30s", "--max-hold", "5s"],
        &["--grace", "10s"],
        &["--permits", "2"],
        &["--kind", "read_lock", "--at-least", "1s"],
    ] {
        let options = [&["--name", "a"], options].concat();
        let ran = finished(bed.script(&options, "touch ran")).await;
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
    }
    assert!(!bed.room().join("ran").exists());
}

#[tokio::test]
async fn the_name_stands_alone_or_behind_an_option() {
    let bed = TestBed::new().await;
    for name in [
        &["a"][..],
        &["--name", "a"],
        &["--wait", "5s", "a"],
        &["a", "--wait", "5s"],
    ] {
        let ran = finished(bed.script(name, "echo $LOCKTOPUS_NAME")).await;
        assert_eq!(ran.ok().out, "a\n", "{name:?}");
    }
    for wrong in [
        &["run", "--", "true"][..],
        &["run", "a", "--name", "b", "--", "true"],
    ] {
        let ran = bed.ran(wrong).await;
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
    }
    let leader = bed.ran(&["-q", "leader", "a", "--", "true"]).await;
    assert_eq!(leader.code, 0, "{leader:?}");
}

/// The options are checked against the configured lease, before connecting.
#[tokio::test]
async fn times_are_judged_before_anything_is_sent() {
    let bed = TestBed::without_servers();
    let nobody = "redis://127.0.0.1:1?connect_timeout=1s";
    let code = async |url: &str, options: &[&str]| {
        let run = [&["--url", url, "run", "a"], options, &["--", "true"]].concat();
        crate::usual::ended(bed.bare(&run)).await.code
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
    assert_eq!(crate::usual::ended(bed.bare(&leader)).await.code, 2);
}

/// What is left of a lease after a hand-off does not matter.
#[tokio::test]
async fn a_lease_that_was_handed_over_is_as_long_as_any() {
    let bed = TestBed::new().await;
    let mut holder = bed.script(
        &["a"],
        "echo $$ >pid; while [ ! -e go ]; do sleep 0.01; done",
    );
    bed.pid("pid").await;
    let next = bed.script(&["a", "--grace", "9.2s"], "exit 9");
    crate::usual::eventually("a waiter", async || {
        let ran = bed.ran(&["-q", "--format", "json", "status", "a"]).await;
        ran.out.contains("\"waiters\":[{").then_some(())
    })
    .await;
    std::fs::write(bed.room().join("go"), "").unwrap();
    assert!(holder.wait().await.unwrap().success());
    assert_eq!(finished(next).await.code, 9);
    let held = bed.script(&["a", "--grace", "200ms", "--max-hold", "2s"], "exit 9");
    assert_eq!(finished(held).await.code, 9);
}
