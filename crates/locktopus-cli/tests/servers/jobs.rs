//! `job`: a program at fixed times, on one of several machines.

use std::collections::BTreeSet;

use crate::usual::{Place, ended, eventually, finished, runs, signal};

/// Notes when it was due, under which token.
const NOTE: &str = "echo $LOCKTOPUS_SCHEDULED_AT $LOCKTOPUS_TOKEN >>runs";

fn noted(place: &Place) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(place.room().join("runs")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let lines = lines.map(|(at, token)| (at.to_owned(), token.parse().unwrap()));
    lines.collect()
}

#[tokio::test]
async fn each_run_is_begun_by_one_machine() {
    let place = Place::new().await;
    let schedules: [&[&str]; 3] = [
        &["--every", "1s"],
        &["--cron", "* * * * * *"],
        &["--cron", "* * * * * *", "--zone", "Asia/Kathmandu"],
    ];
    let machines = schedules.map(|schedule| {
        let arguments = [&["-q", "job", "a"], schedule, &["--", "sh", "-c", NOTE]].concat();
        place.command(&arguments).spawn().unwrap()
    });
    let runs = eventually("four runs", async || {
        Some(noted(&place)).filter(|runs| runs.len() >= 4)
    })
    .await;
    let times: BTreeSet<_> = runs.iter().map(|(at, _)| at).collect();
    assert_eq!(times.len(), runs.len(), "begun twice: {runs:?}");
    assert!(runs.is_sorted_by_key(|(_, token)| *token), "{runs:?}");
    for machine in machines {
        signal("TERM", machine.id().unwrap()).await;
        assert_eq!(finished(machine).await.code, 143);
    }
    place.free("a").await;
}

/// A run that loses its lock is stopped, and the next one comes.
#[tokio::test]
async fn a_job_goes_on_after_a_run_that_lost_its_lock() {
    let place = Place::new().await;
    let script = "if [ -e pid ]; then echo $LOCKTOPUS_SCHEDULED_AT $LOCKTOPUS_TOKEN >>runs; exit; \
                  fi; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done";
    let arguments = [
        "job", "a", "--every", "1s", "--lease", "3s", "--", "sh", "-c", script,
    ];
    let machine = place.command(&arguments).spawn().unwrap();
    let first = place.pid("pid").await;
    place.does("-q break a --reason stuck").await;
    eventually("the run to be stopped", async || {
        (!runs(first)).then_some(())
    })
    .await;
    eventually("the next run", async || {
        (!noted(&place).is_empty()).then_some(())
    })
    .await;
    signal("TERM", machine.id().unwrap()).await;
    let ran = finished(machine).await;
    assert_eq!(ran.code, 143, "{ran:?}");
    assert!(
        ran.err.contains("the program was stopped with TERM"),
        "{ran:?}"
    );
}

/// A signal reaches the program of a run, and the command ends after it.
#[tokio::test]
async fn a_signal_ends_the_run_and_the_job() {
    let place = Place::new().await;
    let script = "trap 'echo asked >asked; exit 3' TERM; echo $$ >pid.new; mv pid.new pid; \
                  while :; do sleep 0.05; done";
    let arguments = ["job", "a", "--every", "1s", "--", "sh", "-c", script];
    let machine = place.command(&arguments).spawn().unwrap();
    place.pid("pid").await;
    signal("TERM", machine.id().unwrap()).await;
    let ran = finished(machine).await;
    assert_eq!(ran.code, 143, "{ran:?}");
    assert!(ran.err.contains("ended with 3"), "{ran:?}");
    assert!(place.room().join("asked").exists());
    place.free("a").await;
}

/// Nothing is connected: no server is there.
#[tokio::test]
async fn times_are_read_before_anything_is_sent() {
    let place = Place::without_servers();
    let nobody = "redis://127.0.0.1:1?connect_timeout=1s";
    let cases: [(&[&str], &str); 7] = [
        (&[], "--cron <EXPRESSION>"),
        (&["--cron", "0 25 * * *"], "--cron = \"0 25 * * *\""),
        (&["--cron", "0 3 * *"], "--cron = \"0 3 * *\""),
        (
            &["--cron", "0 3 * * *", "--zone", "Berlin"],
            "--zone = \"Berlin\"",
        ),
        (
            &["--cron", "0 3 * * *", "--every", "1h"],
            "cannot be used with",
        ),
        (&["--every", "1h", "--zone", "UTC"], "cannot be used with"),
        (&["--every", "1h", "--lease", "2s"], "--lease"),
    ];
    for (options, said) in cases {
        let job = [&["--url", nobody, "job", "a"], options, &["--", "true"]].concat();
        let ran = ended(place.bare(&job)).await;
        assert_eq!(ran.code, 2, "{options:?}: {ran:?}");
        assert!(ran.err.contains(said), "{options:?}: {ran:?}");
    }
}
