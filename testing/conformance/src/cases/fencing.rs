//! Fencing tokens grow strictly over the grants of a name.

use locktopus_core::FencingToken;

use super::expiry::take_over;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING};

/// Every grant of a kind with tokens carries a token, and no other grant does.
pub async fn tokens_exist_where_promised(ctx: Ctx) {
    let a = ctx.first().await;
    let holder = ctx.owner();
    let token = a.take(&holder, LONG).await;
    let promised = ctx.flavour().kind().has_tokens();
    Rule::Tokens.check(
        token.is_some() == promised,
        format_args!("tokens promised: {promised}; granted with {token:?}"),
    );
    a.give_back(&holder).await;
}

/// Each grant has a greater token than the one before, across clients.
pub async fn tokens_grow_over_grants(ctx: Ctx) {
    let clients = [ctx.first().await, ctx.second().await];
    let mut last = None;
    for i in 0..20 {
        let holder = ctx.owner();
        let token = clients[i % 2].take(&holder, LONG).await;
        grew(&mut last, token, "a release");
        clients[(i / 2) % 2].give_back(&holder).await;
    }
}

/// The successor of an expired hold has a greater token, too.
pub async fn tokens_grow_after_expiry(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.first().await, ctx.second().await);
    let (former, next) = (ctx.owner(), ctx.owner());
    let mut last = None;
    grew(&mut last, a.take(&former, short).await, "nothing");
    take_over(&b, &next, short).await;
    grew(&mut last, b.take(&next, LONG).await, "an expiry");
    b.give_back(&next).await;
}

/// Deleting the lock does not set its tokens back.
pub async fn tokens_grow_after_deletion(ctx: Ctx) {
    let a = ctx.first().await;
    let (former, next) = (ctx.owner(), ctx.owner());
    let mut last = None;
    grew(&mut last, a.take(&former, LONG).await, "nothing");
    if !ctx.wipe().await {
        a.give_back(&former).await;
        return;
    }
    grew(&mut last, a.take(&next, LONG).await, "a deletion");
    a.give_back(&next).await;
}

/// The state of a held lock shows its holder once, its lease, and the token of the grant.
pub async fn the_state_shows_holder_and_token(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let before = b.state().await;
    Rule::Inspection.check(
        before.holder().is_none() && before.last_token.is_none(),
        format_args!("a lock that was never held has the state {before:?}"),
    );
    let holder = ctx.owner();
    let token = a.take(&holder, LONG).await;
    let shown = b.holder(&holder).await;
    Rule::Inspection.check(
        shown.holds == 1,
        format_args!("{} holds are shown", shown.holds),
    );
    let left = shown.remaining.unwrap_or_default();
    Rule::Inspection.check(
        left <= LONG + ROUNDING && left > LONG / 2,
        format_args!("{left:?} of {LONG:?} is shown as left"),
    );
    let last = b.state().await.last_token;
    Rule::Inspection.check(
        last == token,
        format_args!("the last token is shown as {last:?}, it is {token:?}"),
    );
    a.give_back(&holder).await;
}

fn grew(last: &mut Option<FencingToken>, token: Option<FencingToken>, after: &str) {
    Rule::Tokens.check(
        token.is_some() && token > *last,
        format_args!("after {after}, token {token:?} followed {last:?}"),
    );
    *last = token;
}
