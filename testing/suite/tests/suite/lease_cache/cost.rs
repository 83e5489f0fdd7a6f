//! Acquiring a kept lock again costs nothing.

use crate::common::close;
use crate::common::raw::Raw;
use crate::lease_cache::{At, KEEP, locks, requests};

const ROUNDS: usize = 50;

/// How many scripts have run on the server, and what it stores for this name.
async fn look(raw: &mut Raw, name: &str) -> (i64, Vec<String>) {
    let stats = raw.say(&["INFO", "commandstats"]).await.text();
    let scripts = stats.lines().filter_map(|line| {
        let line = line.strip_prefix("cmdstat_evalsha:calls=")?;
        line.split(',').next()?.parse::<i64>().ok()
    });
    let keys = raw.say(&["KEYS", &format!("*{name}*")]).await;
    let mut keys: Vec<_> = keys.list().iter().map(|key| key.text()).collect();
    keys.retain(|key| !key.starts_with("redisson_lock_token"));
    keys.sort();
    (scripts.sum(), keys)
}

pub(crate) async fn of_taking_again(at: At) -> String {
    let locks = locks(&at).await;
    let mut raw = Raw::to(at.0.primary_for("kept").await.unwrap()).await;
    for (request, name, side) in requests(&locks, "kept")
        .into_iter()
        .zip(["kept", "kept-mutex"])
        .map(|(request, name)| (request, name, format!("locktopus_waiters:{{{name}}}")))
    {
        let request = request.lease_cache(KEEP);
        // This also loads the script into the server.
        let passing = request.clone().acquire().await.unwrap();
        passing.release().await.unwrap();
        let (before, keys) = look(&mut raw, name).await;
        assert!(
            keys.contains(&name.to_owned()) && keys.contains(&side),
            "{keys:?}"
        );
        let mut last = None;
        for _ in 0..ROUNDS {
            let guard = request.clone().acquire().await.unwrap();
            assert!(guard.token() > last, "tokens must grow");
            last = guard.token();
            guard.release().await.unwrap();
        }
        let (after, _) = look(&mut raw, name).await;
        assert_eq!(after, before, "scripts for what this process had already");
        // Others see the usual data, which goes away with the lock.
        let kind = raw.say(&["TYPE", name]).await.text();
        assert_eq!(kind == "hash", name == "kept");
        if kind == "hash" {
            assert_eq!(raw.say(&["HLEN", name]).await.int(), 1);
        }
        assert!(raw.say(&["PTTL", &side]).await.int() > 0, "it must expire");
    }
    close(locks).await;
    let (_, keys) = look(&mut raw, "kept").await;
    assert!(keys.is_empty(), "left behind: {keys:?}");
    format!("{ROUNDS} acquisitions without a script")
}
