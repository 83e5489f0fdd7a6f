//! The command's messages: they name flags, and warn only of dangers.

use crate::usual::{TestBed, ended, finished, words};

/// An outdated patch version is not worth a warning. A server that evicts locks is, once.
#[tokio::test]
async fn only_dangers_are_told_and_only_once() {
    let bed = TestBed::new().await;
    for arguments in [
        &["status", "a"][..],
        &["run", "a", "--", "true"],
        &["leader", "a", "--", "true"],
        &["lock", "b", "--lease", "1s"],
        &["latch", "show", "c"],
        &["semaphore", "show", "d"],
    ] {
        let ran = bed.ran(arguments).await.ok();
        assert_eq!(ran.err, "", "{arguments:?}");
    }
    let policy = words("CONFIG SET maxmemory-policy allkeys-lru maxmemory 100mb");
    bed.node().command(&policy).await.unwrap();
    let warned = bed.does("status a").await.err;
    assert_eq!(warned.lines().count(), 1, "{warned}");
    assert!(
        warned.trim_start().starts_with("ERROR [eviction] "),
        "{warned}"
    );
    assert!(
        !warned.contains("danger") && !warned.contains("WARN"),
        "{warned}"
    );
    for quiet in [&["-q", "status", "a"][..], &["-q", "doctor"]] {
        assert_eq!(bed.ran(quiet).await.err, "", "{quiet:?}");
    }
    assert_eq!(bed.ran(&["doctor"]).await.err, "");
}

/// The victim, once, `watch` and the log of `break` show the reason.
#[tokio::test]
async fn the_reason_of_a_break_reaches_everybody() {
    let bed = TestBed::new().await;
    let mut holder = words("run a --lease 3s -- sh -c");
    holder.push("echo $$ >pid; exec sleep 60");
    let holder = bed.command(&holder).spawn().unwrap();
    bed.pid("pid").await;
    let watch = words("-q watch a --interval 20ms --until-free");
    let watch = bed.command(&watch).spawn().unwrap();
    let reason = "hangs since 3 am, INC-4711";
    let json = words("-q --format json watch a --interval 20ms --until-free");
    let mut json = bed.command(&json).spawn().unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(json.stdout.take().unwrap()));
    assert!(
        lines
            .next_line()
            .await
            .unwrap()
            .unwrap()
            .contains("\"held\":true")
    );
    let unexplained = bed.ran(&["break", "a", "--reason", ""]).await;
    assert_eq!(unexplained.code, 2, "{unexplained:?}");
    let free = bed.ran(&["break", "free", "--reason", reason]).await.ok();
    assert!(!free.err.contains(reason), "no lock was released: {free:?}");
    let broken = bed.ran(&["break", "a", "--reason", reason]).await.ok();
    assert!(broken.err.contains(reason), "its own log: {broken:?}");
    let lost = finished(holder).await;
    assert_eq!(lost.code, 76, "{lost:?}");
    let told = format!("error: lock \"a\" is lost: it was released by force ({reason})");
    assert!(lost.err.contains(&told), "{lost:?}");
    assert_eq!(lost.err.matches(reason).count(), 1, "{lost:?}");
    let change = lines.next_line().await.unwrap().unwrap();
    let how = format!("\"how\":\"broken\",\"reason\":\"{reason}\"");
    assert!(change.contains(&how), "{change}");
    let watched = finished(watch).await.ok().out;
    let free = watched.lines().last().unwrap();
    assert!(
        free.contains("free") && (free.contains(reason) || watched.lines().count() == 1),
        "{watched}"
    );

    // Tickets of a broken lock, then of a deleted one.
    let ticket = bed.does("-q lock t --lease 60s").await.out;
    bed.ran(&["-q", "break", "t", "--reason", "why not"])
        .await
        .ok();
    for command in [
        &["-q", "extend", "t", "--lease", "9s"][..],
        &["-q", "unlock", "t"],
    ] {
        let mut command = bed.command(command);
        command.env("LOCKTOPUS_TICKET", ticket.trim());
        let late = ended(command).await;
        assert_eq!(late.code, 76, "{late:?}");
        assert!(late.err.contains("by force (why not)"), "{late:?}");
    }
    let ticket = bed.does("-q lock t --lease 60s").await.out;
    bed.node().command(&["DEL", "t"]).await.unwrap();
    let mut unlock = bed.command(&["-q", "unlock", "t"]);
    unlock.env("LOCKTOPUS_TICKET", ticket.trim());
    let late = ended(unlock).await;
    assert!(
        late.err.contains("not know it any more (its lease ended"),
        "{late:?}"
    );
}

#[tokio::test]
async fn a_read_write_lock_is_named_after_the_half_that_is_held() {
    let bed = TestBed::new().await;
    for kind in ["read_lock", "write_lock"] {
        let lock = ["-q", "lock", kind, "--lease", "60s", "--kind", kind];
        bed.ran(&lock).await.ok();
        for status in [
            &["-q", "status", kind][..],
            &["-q", "status", kind, "--kind", "read_lock"],
            &["-q", "status", kind, "--kind", "write_lock"],
        ] {
            let said = bed.ran(status).await.ok().out;
            let expected = format!("{kind} \"{kind}\" is held");
            assert!(said.starts_with(&expected), "{status:?}: {said}");
        }
        // Breaking either half ends both. Only a writer has a token.
        let broken = bed
            .does(&format!("-q break {kind} --kind read_lock --reason x"))
            .await
            .out;
        let begin = format!("{kind} \"{kind}\" was taken");
        assert!(broken.starts_with(&begin), "{broken}");
        assert_eq!(
            broken.contains("with fencing tokens up to"),
            kind == "write_lock",
            "{broken}"
        );
    }
}

/// Errors name flags, not Rust paths, and say what to do instead.
#[tokio::test]
async fn mistakes_are_told_in_the_words_of_the_command() {
    let bed = TestBed::new().await;
    for done in [
        "lock fair --lease 60s --kind fair_lock",
        "lock mutex --lease 60s --kind mutex",
        "latch set latch 2",
        "semaphore init --with-ids ids 3",
    ] {
        bed.does(done).await;
    }
    let long_leases = format!("--url {}&renewed_lease=40d status a", bed.url());
    let quarantine = "safety=quarantine&quarantine_max_lease=1m lock a --lease 5m";
    let quarantined = format!("--url {}&{quarantine}", bed.url());
    let held_back = quarantined.replace("lock a --lease 5m", "run q --wait 0s -- true");
    let nameless = bed.ran(&["run", "a", "--", ""]).await;
    assert!(
        nameless.err.contains("a program without a name"),
        "{nameless:?}"
    );
    for (line, said) in [
        ("run fair -- true", "use --kind fair_lock"),
        ("run mutex -- true", "use --kind mutex"),
        (
            "leader fair -- true",
            "use --kind fair_lock (run, lock and status take --kind)",
        ),
        (
            "semaphore show fair",
            "use --kind fair_lock (run, lock and status take --kind)",
        ),
        (
            "semaphore show ids",
            "`locktopus semaphore` with --with-ids",
        ),
        (
            "run ids -- true",
            "Find out which with locktopus status ids",
        ),
        (
            "lock ids --lease 9s --kind permit_semaphore --permits 9",
            "or raise the number: locktopus semaphore resize --with-ids ids PERMITS",
        ),
        (
            "run $1 --kind semaphore -- true",
            "set it: locktopus semaphore init '$1' PERMITS",
        ),
        (
            "lock a --lease 400d",
            "--lease 400d: a lease must be at most 1d",
        ),
        (
            &long_leases,
            "renewed_lease = 40d: a lease must be at most 1d",
        ),
        (
            "run a --lease 2999ms -- true",
            "--lease 2s999ms is too short: --lease must be at least 3s",
        ),
        ("status a --kind fair", "value exists: 'fair_lock'"),
        ("run a --at-least 5m --kind semaphore -- true", "--at-least"),
        (&quarantined, "--lease 5m: a lease must be at most 1m"),
        ("lock a --lease 1us", "--lease 1us: "),
        ("run a --wait -1s -- true", "must not be negative"),
        ("run a --wait 1M -- true", "'1M' for '--wait <TIME>': "),
        ("run a --max-hold 1ns -- true", "--max-hold 1ns "),
        (&held_back, "may be in quarantine"),
        (
            "lock a --lease 9s --kind semaphore --permits 0",
            "--permits 0: ",
        ),
        (
            "latch wait latch --wait 50ms",
            "latch \"latch\" did not open within ",
        ),
        ("latch show fair", "not as a latch"),
        ("--url redis:/localhost status a", "two slashes"),
        ("--url redis:localhost status a", "two slashes"),
        ("--url redis://localhost?colour=blue status a", "is unknown"),
        (
            "--url redis://localhost?safety=quorum status a",
            "several servers",
        ),
        ("--url localhost:6379 status a", "no scheme"),
    ] {
        let ran = bed.ran(&words(line)).await;
        assert_ne!(ran.code, 0, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {said:?} is not in {ran:?}");
        for wrong in
            "::/-- -1/fixed_lease/renewed_lease/hold_at_least/max_hold/another name/do not hold it"
                .split('/')
        {
            let allowed =
                line.starts_with("latch") && wrong == "another name" || said.starts_with(wrong);
            assert!(!ran.err.contains(wrong) || allowed, "{line}: {ran:?}");
        }
    }
}
