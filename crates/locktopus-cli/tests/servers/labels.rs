//! How holders are shown to others.

use locktopus_servers::topology::Resp;

use crate::usual::{TestBed, ended, eventually, finished, signal, words};

/// Polls `status` until it fits. Returns what it printed.
async fn status(bed: &TestBed, name: &str, fits: impl Fn(&str) -> bool) -> String {
    eventually("the status", async || {
        let said = bed.ran(&["-q", "status", name]).await.ok().out;
        fits(&said).then_some(said)
    })
    .await
}

/// The keys of instance records, except reasons of broken locks.
async fn records(bed: &TestBed) -> Vec<String> {
    let keys = bed.node().command(&["KEYS", "locktopus_instance:*"]);
    let mut records = Vec::new();
    for key in keys.await.unwrap().items().iter().map(Resp::text) {
        let record = bed.node().command(&["GET", &key]).await.unwrap();
        if !record.text().contains("\nnote=") {
            records.push(key);
        }
    }
    records
}

/// Every command that shows holders shows the label of a program under `run`, until it ends.
#[tokio::test]
async fn holders_are_shown_by_their_label() {
    let bed = TestBed::new().await;
    let holder = bed.script(
        &[
            "--name",
            "import",
            "--lease",
            "6s",
            "--label",
            "billing worker",
            "--label-host",
            "web-3",
        ],
        "echo $$ >pid; exec sleep 60",
    );
    let process = holder.id().unwrap();
    bed.pid("pid").await;
    let waiter = bed.script(
        &words("--name import --label crawler --label-host off"),
        "true",
    );
    let told = format!("billing worker on web-3, process {process}, started 20");
    let status = status(&bed, "import", |status| {
        status.contains(&told) && status.contains("\n    crawler, process ")
    })
    .await;
    assert!(
        status.contains(", held for ") && status.contains("s (since 20"),
        "{status}"
    );
    let listed = bed.does("-q ls").await.out;
    assert!(listed.contains("billing worker@web-3  "), "{listed}");
    let json = bed.does("-q --format json status import").await.out;
    for field in [
        "\"label\":\"billing worker\",\"host\":\"web-3\"",
        &format!("\"process\":{process}"),
        "\"held_ms\":",
        "\"held_since\":\"20",
        "\"label\":\"crawler\",\"process\":",
    ] {
        assert!(json.contains(field), "{field} is not in {json}");
    }
    let busy = [
        "-q", "run", "--name", "import", "--wait", "0s", "--", "true",
    ];
    let busy = bed.ran(&busy).await;
    assert!(
        busy.err.contains("(billing worker@web-3), lease"),
        "{busy:?}"
    );
    let broken = bed
        .ran(&["-q", "break", "import", "--reason", "a test"])
        .await
        .ok()
        .out;
    assert!(
        broken.contains(&told) && broken.contains("had held it for"),
        "{broken}"
    );
    assert_eq!(finished(holder).await.code, 76);
    finished(waiter).await.ok();
    assert_eq!(records(&bed).await, [""; 0]);
}

/// A lock taken by `lock` keeps its label after the process is gone. Without a label, none is
/// shown.
#[tokio::test]
async fn tickets_are_shown_by_their_label() {
    let bed = TestBed::new().await;
    let mut command = bed.command(&["-q", "lock", "deploy", "--lease", "60s"]);
    command.env("LOCKTOPUS_LABEL", "deploy of tonight");
    ended(command).await.ok();
    bed.does("-q lock other --lease 60s").await;
    let status = bed.does("-q status deploy").await.out;
    let line = status.lines().nth(2).unwrap();
    assert!(line.starts_with("    deploy of tonight on "), "{status}");
    assert!(!line.contains("process"), "{status}");
    let other = bed.does("-q --format json status other").await.out;
    assert!(
        other.contains("\"held_ms\":") && !other.contains("label"),
        "{other}"
    );
}

/// An unprintable label is refused before any lock is taken. Labels written by others are escaped.
#[tokio::test]
async fn nothing_controls_the_terminal() {
    let bed = TestBed::new().await;
    let run = words("-q run --name a --label \u{1b}[2J -- true");
    let ran = bed.ran(&run).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    let mut command = bed.command(&["-q", "lock", "a", "--lease", "60s"]);
    command.env("LOCKTOPUS_LABEL", "a\tb");
    let ran = ended(command).await;
    assert_eq!(ran.code, 78, "{ran:?}");
    assert!(ran.err.contains("environment LOCKTOPUS_LABEL"), "{ran:?}");
    let ran = bed
        .ran(&words("-q run --name a --label-host x -- true"))
        .await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(bed.does("-q status a").await.out.contains("is free"));

    let holder = bed.script(
        &["--name", "a", "--label", "x"],
        "echo $$ >pid; exec sleep 60",
    );
    bed.pid("pid").await;
    status(&bed, "a", |status| status.contains("\n    x on ")).await;
    let node = bed.node();
    let keys = records(&bed).await;
    let [key] = keys.as_slice() else {
        panic!("{keys:?}")
    };
    let forged = "locktopus-instance1\nlabel=\u{1b}]0;owned\u{7}\nhost=\u{202e}\n";
    node.command(&["SET", key, forged]).await.unwrap();
    for command in [
        &["-q", "status", "a"][..],
        &["-q", "ls"],
        &["-q", "--format", "json", "ls"],
    ] {
        let shown = bed.ran(command).await.ok().out;
        assert!(shown.contains("]0;owned"), "{shown}");
        assert!(
            !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']) && !shown.contains("u001b"),
            "{shown:?}"
        );
    }
    signal("TERM", holder.id().unwrap()).await;
    finished(holder).await;
}
