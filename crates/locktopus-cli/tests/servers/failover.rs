//! `failover watch` while something happens to the servers.

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::usual::{SOON, TestBed, ended, finished, signal, words};

/// A running watch.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(bed: &TestBed, options: &[&str]) -> Self {
        let always = words("--format json failover watch --interval 200ms");
        let mut command = bed.command(&[&always, options].concat());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for the next line that contains all these parts.
    async fn line(&mut self, parts: &[&str]) -> String {
        let find = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if parts.iter().all(|part| line.contains(part)) {
                    return line;
                }
            }
            panic!("it ended without {parts:?}")
        };
        timeout(SOON, find).await.expect("such a line")
    }

    async fn grants(&mut self) {
        let line = self.line(&["\"event\":\"progress\""]).await;
        assert!(!line.contains("\"grants_per_second\":0.0,"), "{line}");
    }

    /// Interrupts it. Returns its last line and its exit code.
    async fn end(mut self) -> (String, i32) {
        signal("INT", self.child.id().unwrap()).await;
        let summary = self.line(&["\"event\":\"summary\""]).await;
        drop(self.lines);
        (summary, finished(self.child).await.code)
    }
}

#[tokio::test]
async fn a_restart_is_seen_and_judged_and_nothing_stays() {
    let bed = TestBed::new().await;
    let mut watch = Watch::start(&bed, &["--faults", "1"]);
    let started = watch.line(&["\"event\":\"started\""]).await;
    assert!(started.contains("\"safety\":\"plain\""), "{started}");
    watch.grants().await;
    bed.node().crash().await.unwrap();
    watch
        .line(&["\"fault\":\"unreachable\"", "\"over\":false"])
        .await;
    bed.node().start().await.unwrap();
    watch
        .line(&["\"fault\":\"restart\"", "\"over\":false"])
        .await;
    let over = watch.line(&["\"number\":1", "\"over\":true"]).await;
    assert!(over.contains("\"outage_ms\":"), "{over}");
    let (summary, code) = watch.end().await;
    assert_eq!(code, 0, "{summary}");
    for part in [
        "\"rates\":[{\"fault\":\"restart\",\"seen\":1,",
        "\"trials\":1",
        "\"tokens_out_of_order\":0",
        "\"stale_writes_accepted\":0",
        "\"failed\":[]",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let listed = bed.does("-q ls locktopus-failover:*").await;
    assert_eq!(listed.out, "no lock is held\n");
    let keys = bed.node().command(&["KEYS", "*locktopus-failover:*"]).await;
    for key in keys.unwrap().items() {
        let left = bed.node().command(&["TTL", &key.text()]).await;
        let left: i64 = left.unwrap().text().parse().unwrap();
        assert!(left != -1 && left <= 60, "{key:?} stays for {left} s");
    }
}

#[tokio::test]
async fn locks_that_somebody_deletes_are_a_broken_promise() {
    let bed = TestBed::new().await;
    // Waiters poll before holders renew, so a deleted lock gets a second holder.
    let mut watch = Watch::start(&bed, &["--lease", "12s"]);
    watch.grants().await;
    bed.node().command(&["FLUSHALL"]).await.unwrap();
    watch.line(&["somebody else holds it"]).await;
    let (summary, code) = watch.end().await;
    assert_eq!(code, 1, "{summary}");
    assert!(
        summary.contains("pairs of holders valid at once"),
        "{summary}"
    );
}

#[tokio::test]
async fn a_watch_that_saw_nothing_fails() {
    let bed = TestBed::new().await;
    let arguments = ["-q", "failover", "watch", "--for", "1s", "--faults", "1"];
    let ran = bed.ran(&arguments).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains("failed: 0 faults were seen, not 1"),
        "{ran:?}"
    );
    let here = ["--url", "memory:", "failover", "watch"];
    assert_eq!(ended(bed.bare(&here)).await.code, 2);
    let nowhere = ["--url", "redis://127.0.0.1:1", "failover", "watch"];
    assert_eq!(ended(bed.bare(&nowhere)).await.code, 69);
    let help = bed.does("failover --help").await;
    assert!(help.out.contains("watch"), "{help:?}");
}
