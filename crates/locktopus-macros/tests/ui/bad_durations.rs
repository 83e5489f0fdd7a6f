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

fn main() {}
