use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = locks)]
async fn nothing(locks: &Locktopus) {}

#[locked(name = "a", locks = locks)]
async fn no_result(locks: &Locktopus) -> u32 {
    1
}

#[locked(name = "a", locks = locks, when_busy = "skip")]
async fn no_option(locks: &Locktopus) -> Result<u32, LockError> {
    Ok(1)
}

struct Own;

#[locked(name = "a", locks = locks)]
async fn own_error(locks: &Locktopus) -> Result<u32, Own> {
    Ok(1)
}

fn main() {}
