//! Owner ids are bytes, and need not be text.

use locktopus_core::{ExtendOutcome, OwnerId, ReleaseOutcome};

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;

/// All equal to a store that turns bytes into text, cuts them at a zero, or drops trailing white
/// space.
const IDS: [&[u8]; 4] = [
    b"\xff\x00\x0a",
    b"\xfe\x00\x0a",
    b"\xff\x00\x0c",
    b"\xff\x00",
];

/// Ids that are not text come back byte by byte, and only the same bytes are the same owner.
pub async fn ids_that_are_no_text_are_kept_apart(ctx: Ctx) {
    let (a, b) = (ctx.first().await, ctx.second().await);
    let owners = IDS.map(OwnerId::from_bytes);
    for holder in &owners {
        a.take(holder, LONG).await;
        b.holder(holder).await;
        for other in owners.iter().filter(|other| *other != holder) {
            b.refused(other).await;
            Rule::Ownership.check(
                b.release(other).await == ReleaseOutcome::NotHeld,
                "a release with other bytes ended a hold",
            );
            Rule::Ownership.check(
                b.extend(other, LONG).await != ExtendOutcome::Extended,
                "an extension with other bytes was carried out",
            );
        }
        b.holder(holder).await;
        a.give_back(holder).await;
    }
}
