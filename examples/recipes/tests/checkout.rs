//! How to test a program that uses locks: the memory backend, tokio's paused clock, and faults when
//! the test wants them.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{LockError, Locktopus, LostCause, MemoryBackend};
use locktopus_layers::{Call, Chaos, Fault};

/// The program: ships an order, in a minute, under its lock.
async fn ship(locks: &Locktopus, order: u32) -> Result<&'static str, LockError> {
    let work = |_lease| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "shipped"
    };
    let lock = locks.lock(format!("order:{order}"));
    let shipped = lock.try_run(work).await?;
    Ok(shipped.unwrap_or("somebody else ships it"))
}

fn shop() -> Result<(Chaos, Locktopus), LockError> {
    let chaos = Chaos::new(Arc::new(MemoryBackend::new()));
    let locks = Locktopus::builder(chaos.clone()).build()?;
    Ok((chaos, locks))
}

#[tokio::test(start_paused = true)] // a minute takes no time
async fn an_order_is_shipped_once() -> Result<(), LockError> {
    let (_, locks) = shop()?;
    let (one, two) = tokio::join!(ship(&locks, 7), ship(&locks, 7));
    assert_eq!((one?, two?), ("shipped", "somebody else ships it"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shipping_stops_when_its_lock_is_lost() -> Result<(), Box<dyn std::error::Error>> {
    let (chaos, locks) = shop()?;
    let shipping = tokio::spawn(async move { ship(&locks, 7).await });
    tokio::task::yield_now().await;
    assert_eq!(chaos.lose("order:7").await?, 1);
    let Err(LockError::Lost { cause, .. }) = shipping.await? else {
        return Err("it went on without its lock".into());
    };
    assert_eq!(cause, LostCause::Missing);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shipped_while_the_locks_are_away() -> Result<(), LockError> {
    let (chaos, locks) = shop()?;
    chaos.fail(Call::Attempt, Fault::Refuse);
    assert!(matches!(
        ship(&locks, 7).await,
        Err(LockError::Backend { .. })
    ));
    chaos.calm();
    assert_eq!(ship(&locks, 7).await?, "shipped");
    Ok(())
}
