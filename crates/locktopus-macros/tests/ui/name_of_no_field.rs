use locktopus::{LockError, Locktopus, locked};

struct Order {
    id: u64,
}

#[locked(name = "order:{order.number}", locks = locks)]
async fn pay(locks: &Locktopus, order: &Order) -> Result<u64, LockError> {
    Ok(order.id)
}

fn main() {}
