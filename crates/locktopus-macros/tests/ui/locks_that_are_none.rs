use locktopus::{LockError, locked};

#[locked(name = "a", locks = url)]
async fn pay(url: &str) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
