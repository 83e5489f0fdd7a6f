use locktopus::{LockError, Locktopus, locked};

struct Order;

#[locked(name = "order:{order}", locks = locks)]
async fn pay(locks: &Locktopus, order: Order) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
