use locktopus::{LockError, Locktopus, locked};

struct Own;

impl From<LockError> for Own {
    fn from(_: LockError) -> Self {
        Self
    }
}

#[locked(name = "a", locks = locks)]
async fn wrong_value(locks: &Locktopus) -> Result<u32, Own> {
    Ok("five")
}

#[locked(name = "a", locks = locks)]
async fn wrong_error(locks: &Locktopus) -> Result<u32, Own> {
    Ok("five".parse::<u32>()?)
}

fn main() {}
