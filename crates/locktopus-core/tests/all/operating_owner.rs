//! Operators take a lock away from the owner that they have seen.

use std::time::Duration;

use locktopus_core::{LockKind, Locktopus, LostCause};
use locktopus_memory::MemoryBackend;
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn force_ends_the_holds_of_one_owner_and_no_other() {
    let store = MemoryBackend::new();
    let client = || Locktopus::builder(store.another_client()).build().unwrap();
    let (here, there) = (client(), client());
    let (rw, semaphore) = (here.rw_lock("rw"), here.semaphore("s"));
    semaphore.initialise(5).await.unwrap();
    let bystanders = [
        rw.read().acquire().await.unwrap(),
        semaphore.permits(2).acquire().await.unwrap(),
    ];
    for (request, victim) in [
        (there.lock("a"), here.lock("a").acquire().await.unwrap()),
        (
            there.of_kind("rw", LockKind::Write),
            rw.read().acquire().await.unwrap(),
        ),
        // A writer, seen through the other half.
        (
            there.of_kind("w", LockKind::Read),
            here.of_kind("w", LockKind::Write).acquire().await.unwrap(),
        ),
        (
            there.semaphore("s").permits(1),
            semaphore.permits(3).acquire().await.unwrap(),
        ),
    ] {
        let break_it = || {
            request
                .clone()
                .force_release_of(victim.owner_id(), "it hangs")
        };
        let eviction = break_it().await.unwrap();
        assert_eq!(eviction.evicted, [victim.owner_id().clone()]);
        assert!(eviction.fence >= victim.token());
        assert_eq!(eviction.fence.is_some(), victim.token().is_some());
        let broken = request.clone().break_reason(victim.owner_id());
        assert_eq!(broken.await.unwrap().unwrap().reason, "it hangs");
        // By now it has another holder.
        let next = request.clone().acquire();
        let next = timeout(MOMENT, next).await.ok().transpose().unwrap();
        assert_eq!(break_it().await.unwrap().evicted, []);
        next.inspect(|next| next.ensure_valid().unwrap());
        let lost = timeout(Duration::from_secs(15), victim.lost())
            .await
            .unwrap();
        assert!(matches!(lost, LostCause::Evicted { .. }), "{lost:?}");
    }
    assert_eq!(semaphore.available().await.unwrap(), Some(3));
    for bystander in bystanders {
        bystander.release().await.unwrap();
    }
    let permit = here.permit_semaphore("p").permits(1);
    let owner = LockKind::PermitSemaphore.new_owner();
    let error = permit
        .force_release_of(&owner, "it hangs")
        .await
        .unwrap_err();
    assert!(
        format!("{error:?}").contains("an id of its own"),
        "{error:?}"
    );
}
