use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = locks, kind = "fair")]
async fn kind(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, when_busy = "shrug")]
async fn busy(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, timeout = "5s")]
async fn unknown(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", name = "b", locks = locks)]
async fn twice(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, lease = "30s", fixed_lease = "30s")]
async fn both(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, when_busy = "error", wait = "5s")]
async fn hurried(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(locks = locks)]
async fn nameless(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a")]
async fn nobodys(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, kind = "semaphore", at_least = "1m")]
async fn shared(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, at_least = "1m", at_least = "2m")]
async fn longer(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, bind = lease)]
async fn hidden(locks: &Locktopus, lease: u32) -> Result<u32, LockError> {
    Ok(lease)
}

#[locked(name = "a", locks = locks, bind = "lease")]
async fn quoted(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks)]
async fn valueless(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
