//! Records for operators: the holder of a lock, and since when.

use std::time::Duration;

use locktopus_core::{
    Announcement, BackendError, InstanceId, InstanceQuery, InstanceRecord, Label, Locktopus,
    LocktopusBuilder,
};
use tokio::time::Instant;

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// Other clients can read announced records: one answer for each question, in order, the newest
/// record, and none of other namespaces.
pub async fn what_was_announced_is_told(ctx: Ctx) {
    let Some([a, b]) = clients(&ctx).await else {
        return;
    };
    let [one, other, third] = [1, 2, 3].map(|n| InstanceId::from_bytes([n; 6]));
    let space = format!("{}/", ctx.name());
    let record = InstanceRecord::new("größe [1] *")
        .on_host("host")
        .as_process(7);
    say(&a, &space, one, Some(&InstanceRecord::new("before")), LONG).await;
    say(&a, &space, one, Some(&record), LONG).await;
    let bare = InstanceRecord::new("bare");
    say(&b, &space, other, Some(&bare), LONG).await;
    let elsewhere = InstanceRecord::new("elsewhere");
    say(&a, &format!("{space}x"), third, Some(&elsewhere), LONG).await;
    for client in [&a, &b] {
        let told = ask(client, &space, &[other, third, one, other]).await;
        let expected = [Some(&bare), None, Some(&record), Some(&bare)];
        Rule::Inspection.check(
            told.iter().map(Option::as_ref).eq(expected),
            format_args!("asked for a second, an unknown, the first, the second: {told:?}"),
        );
        let none = ask(client, &space, &[]).await;
        Rule::Inspection.check(none.is_empty(), "an answer to no question");
    }
    for (instance, space) in [
        (one, &space),
        (other, &space),
        (third, &format!("{space}x")),
    ] {
        say(&b, space, instance, None, LONG).await;
    }
    let told = ask(&a, &space, &[one, other]).await;
    Rule::Inspection.check(
        told.iter().all(Option::is_none),
        format_args!("what was taken back is told: {told:?}"),
    );
    // Twice is as good as once.
    say(&a, &space, one, None, LONG).await;
}

/// A record expires on time, and later if it is announced again.
pub async fn a_record_ends_by_itself(ctx: Ctx) {
    let Some([a, b]) = clients(&ctx).await else {
        return;
    };
    let [short, kept] = [1, 2].map(|n| InstanceId::from_bytes([n; 6]));
    let space = format!("{}/", ctx.name());
    let record = InstanceRecord::new("short");
    let keep = ctx.short();
    let said = Instant::now();
    for instance in [short, kept] {
        say(&a, &space, instance, Some(&record), keep).await;
    }
    say(&a, &space, kept, Some(&record), LONG).await;
    let told = ask(&b, &space, &[short]).await;
    Rule::Lease.check(
        told[0].is_some() || said.elapsed() >= keep,
        "a record was forgotten before its time",
    );
    let limit = keep + ctx.slack() + ctx.settling().await;
    until(
        Rule::Lease,
        limit,
        "the record of an instance ends",
        || async { ask(&b, &space, &[short]).await[0].is_none() },
    )
    .await;
    let told = ask(&b, &space, &[kept]).await;
    Rule::Lease.check(told[0].is_some(), "a record ended that was renewed");
    say(&a, &space, kept, None, LONG).await;
}

/// A closed client returns an error when it should announce or read records.
pub async fn a_closed_client_announces_nothing(ctx: Ctx) {
    let Some([b, _]) = clients(&ctx).await else {
        return;
    };
    let closed = Client::new(ctx.fresh().await, ctx.target());
    let space = format!("{}/", ctx.name());
    let instance = InstanceId::from_bytes([9; 6]);
    closed.backend.close().await;
    let record = Some(InstanceRecord::new("late"));
    let said = announce(&closed, &space, instance, record, LONG).await;
    let asked = query(&closed, &space, &[instance]).await;
    for error in [said.err(), asked.map(drop).err()] {
        let kind = error.map(|error| error.kind());
        Rule::Errors.check(
            kind == Some(locktopus_core::BackendErrorKind::Closed),
            format_args!("a closed client answered {kind:?}"),
        );
    }
    let told = ask(&b, &space, &[instance]).await;
    Rule::Errors.check(told[0].is_none(), "a closed client announced something");
}

/// Holders and waiters of a labelled instance show its label, for every kind of lock; others show
/// none.
pub async fn holders_and_waiters_are_known_by_their_label(ctx: Ctx) {
    if clients(&ctx).await.is_none() {
        return;
    }
    let space = format!("{}/", ctx.name());
    let label = |text: &str| Label::new(text).host("host");
    let worker = locks(&ctx, 0, |builder| builder.label(label("worker"))).await;
    let rival = locks(&ctx, 1, |builder| builder.label(label("rival"))).await;
    let operator = locks(&ctx, 1, |builder| builder).await;
    let request = |locks: &Locktopus| ctx.flavour().request(locks, "x");
    if ctx.flavour().is_counted() {
        let target = ctx.target_named(&format!("{space}x"));
        ctx.prepared(Client::new(ctx.backend(0).await, target))
            .await;
    }
    let guard = Rule::Api.ok(request(&worker).acquire().await, "acquiring");
    let queues = ctx.flavour().kind().hands_off() && rival.backend().supports_queue;
    let waiting = tokio::spawn(request(&rival).acquire());
    let limit = ctx.slack() + ctx.settling().await;
    until(
        Rule::Inspection,
        limit,
        "holder and waiter are known",
        || async {
            let state = Rule::Api.ok(request(&operator).inspect().await, "inspecting");
            let who = Rule::Api.ok(operator.who(state.owners()).await, "asking who it is");
            let known = |owner| who.of(owner).map(InstanceRecord::label);
            let process = |owner| who.of(owner).and_then(InstanceRecord::process);
            let held = state.holders.iter().any(|holder| {
                let own = process(&holder.owner) == Some(std::process::id());
                known(&holder.owner) == Some("worker") && own
            });
            let waits = |owner| known(owner) == Some("rival");
            held && (!queues || state.waiters.iter().any(|waiter| waits(&waiter.owner)))
        },
    )
    .await;
    let owner = guard.owner_id().clone();
    Rule::Api.ok(guard.release().await, "a release");
    let taken = Rule::Api.ok(waiting.await, "waiting");
    let guard = Rule::Api.ok(taken, "acquiring");
    // A label is announced in the background, so it may follow the grant.
    until(
        Rule::Inspection,
        limit,
        "the next holder is known",
        || async {
            let who = operator.who([guard.owner_id()]).await;
            let who = Rule::Api.ok(who, "asking who it is");
            who.of(guard.owner_id()).map(InstanceRecord::label) == Some("rival")
        },
    )
    .await;
    Rule::Api.ok(guard.release().await, "a release");
    let unlabelled = Rule::Api.ok(request(&operator).acquire().await, "acquiring");
    let who = operator.who([unlabelled.owner_id()]).await;
    let nobody = Rule::Api.ok(who, "asking who it is");
    Rule::Inspection.check(
        nobody.of(unlabelled.owner_id()).is_none(),
        "who has no label is known by one",
    );
    Rule::Api.ok(unlabelled.release().await, "a release");
    drop((worker, rival));
    until(
        Rule::Api,
        limit,
        "who is gone is not known any more",
        || async {
            let who = operator.who([&owner]).await;
            Rule::Api.ok(who, "asking who it is").of(&owner).is_none()
        },
    )
    .await;
}

/// A quorum's tokens show since when a lock is held. Clients choose them up to this far ahead of
/// the nodes' clocks, so that a token is not behind when it reaches the farthest node.
const QUORUM_AHEAD: Duration = Duration::from_secs(1);
/// How long a lock is held before the case reads its hold time.
const HELD: Duration = Duration::from_millis(400);

/// The reported times of a hold and of a wait are right or missing: never longer than they are, nor
/// much shorter.
pub async fn the_time_of_a_hold_is_told_truly(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let ahead = if ctx.is_quorum() {
        QUORUM_AHEAD
    } else {
        Duration::ZERO
    };
    for client in [&a, &b] {
        let owner = ctx.owner();
        let sent = Instant::now();
        client.take(&owner, LONG).await;
        let granted = Instant::now();
        let mut waiter = client.attempt_of(&ctx.owner(), LONG);
        waiter.place = Some(LONG);
        let _ = client.send(&waiter).await;
        let queued = Instant::now();
        // No lease ends meanwhile, so a busy machine does not change the result.
        tokio::time::sleep(HELD + ahead).await;
        let asked = Instant::now();
        let state = b.state().await;
        let _ = client.release_of(&waiter).await;
        let Some(told) = state.holder().and_then(|holder| holder.held_for) else {
            a.give_back(&owner).await;
            return ctx.skip("no times of holds");
        };
        // The clocks of the store and of this process may differ by this much.
        let tolerance = Duration::from_millis(20);
        let is_true = |told: Duration, since: Instant| {
            told <= sent.elapsed() + tolerance && told + ahead + tolerance >= asked - since
        };
        let waited = state.waiters.first().and_then(|waiter| waiter.waited_for);
        Rule::Inspection.check(
            is_true(told, granted) && waited.is_none_or(|waited| is_true(waited, queued)),
            format_args!(
                "after {:?}, a lock is told to be held for {told:?}, and waited for {waited:?}",
                asked - queued
            ),
        );
        client.give_back(&owner).await;
    }
}

/// Two clients, unless this backend keeps no records.
async fn clients(ctx: &Ctx) -> Option<[Client; 2]> {
    let clients = [ctx.bare(0).await, ctx.bare(1).await];
    if clients[0].backend.instances().is_some() {
        return Some(clients);
    }
    ctx.skip("no records of instances");
    None
}

async fn locks(
    ctx: &Ctx,
    index: usize,
    configure: impl FnOnce(LocktopusBuilder) -> LocktopusBuilder,
) -> Locktopus {
    let builder = Locktopus::builder_dyn(ctx.backend(index).await);
    let builder = builder.namespace(format!("{}/", ctx.name()));
    Rule::Api.ok(configure(builder).build(), "building")
}

async fn announce(
    client: &Client,
    namespace: &str,
    instance: InstanceId,
    record: Option<InstanceRecord>,
    keep: Duration,
) -> Result<(), BackendError> {
    let announcement = Announcement {
        namespace: namespace.to_owned(),
        instance,
        record,
        keep,
        deadline: client.deadline(),
    };
    client.backend.announce(&announcement).await
}

/// Makes an announcement, which must be accepted.
async fn say(
    client: &Client,
    namespace: &str,
    instance: InstanceId,
    record: Option<&InstanceRecord>,
    keep: Duration,
) {
    let said = announce(client, namespace, instance, record.cloned(), keep).await;
    Rule::Errors.ok(said, "an announcement");
}

async fn query(
    client: &Client,
    namespace: &str,
    instances: &[InstanceId],
) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
    let query = InstanceQuery {
        namespace: namespace.to_owned(),
        instances: instances.to_vec(),
        deadline: client.deadline(),
    };
    client.backend.records(&query).await
}

/// Asks about each instance, and must be answered.
async fn ask(
    client: &Client,
    namespace: &str,
    instances: &[InstanceId],
) -> Vec<Option<InstanceRecord>> {
    let told = query(client, namespace, instances).await;
    let told = Rule::Errors.ok(told, "a question for records");
    Rule::Errors.check(
        told.len() == instances.len(),
        format_args!("{} answers to {} questions", told.len(), instances.len()),
    );
    told
}
