use locktopus::{LockError, Locktopus, locked};

#[locked(name = "invoice:{id", locks = locks)]
async fn pay(locks: &Locktopus, id: u64) -> Result<u64, LockError> {
    Ok(id)
}

fn main() {}
