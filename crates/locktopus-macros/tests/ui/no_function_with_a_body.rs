use locktopus::{LockError, Locktopus, locked};

#[locked(name = "a", locks = self.locks)]
struct Shop {
    locks: Locktopus,
}

trait Pays {
    #[locked(name = "a", locks = self.locks())]
    async fn pay(&self) -> Result<(), LockError>;
}

fn main() {}
