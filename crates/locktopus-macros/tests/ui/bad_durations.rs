use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = locks, wait = "5 parsecs")]
async fn first(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, lease = "3ms")]
async fn second(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, wait = 5)]
async fn third(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, max_hold = "0s")]
async fn fourth(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, at_least = "0s")]
async fn fifth(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, at_least = "1M")]
async fn sixth(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[locked(name = "a", locks = locks, at_least = "2m", fixed_lease = "1m")]
async fn seventh(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
