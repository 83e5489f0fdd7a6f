//! Output to terminals that obey control characters, and to readers that go away.

use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::usual::{TestBed, finished, words};

#[tokio::test]
async fn names_cannot_command_the_terminal() {
    let bed = TestBed::new().await;
    // From a program with other rules for names, or bad intentions.
    let name = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}x";
    let words = ["HSET", name, "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"];
    bed.node().command(&words).await.unwrap();
    for arguments in [&["-q", "ls"][..], &["-q", "status", name]] {
        let ran = bed.ran(arguments).await;
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("[2J"), "{ran:?}");
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(obeyed), "{ran:?}");
    }
    let json = bed.does("-q --format json ls").await.out;
    assert!(json.contains("\\u001b[2J"), "{json}");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_a_watch() {
    let bed = TestBed::new().await;
    let arguments = ["-q", "watch", "a", "--interval", "20ms"];
    let mut watch = bed.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("the first look");
    drop(lines);
    bed.does("-q lock a --lease 60s").await;
    let ran = finished(watch).await;
    assert_eq!((ran.code, ran.err.as_str()), (141, ""));
}

#[tokio::test]
async fn nobody_who_reads_the_errors_is_no_reason_to_stop() {
    let bed = TestBed::new().await;
    bed.does("-q lock a --lease 60s").await;
    let arguments = words("run --name a --skip-if-held --wait 1s -- true");
    let mut run = bed.command(&arguments).spawn().unwrap();
    drop(run.stderr.take());
    assert_eq!(
        finished(run).await.code,
        0,
        "it skips, and says so to nobody"
    );
}
