use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = locks)]
fn pay(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
