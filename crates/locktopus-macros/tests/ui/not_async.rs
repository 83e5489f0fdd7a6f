use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = locks)]
fn pay(locks: &Locktopus) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
#[locked(name = "a", locks = memory())]
async fn below_a_test() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
