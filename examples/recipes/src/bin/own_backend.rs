//! A backend of your own around any other one: a team's locks have its name as a prefix, and this
//! backend neither lists nor breaks locks. For a store of your own, start from
//! `examples/backend-template`.

use async_trait::async_trait;
use locktopus::{Directory, DynBackend, LockBackend, LockTarget, Locktopus, NameError};

#[derive(Debug)]
struct OfTeam {
    inner: DynBackend,
    prefix: &'static str,
}

#[async_trait]
impl locktopus::Layer for OfTeam {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    /// Called before anything is sent.
    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        let name = target.name().as_str();
        if name.starts_with(self.prefix) {
            return self.inner.check(target);
        }
        Err(NameError::Refused {
            name: name.to_owned(),
            backend: self.inner.info().name,
            rule: format!("locks of this team begin with {:?}", self.prefix),
        })
    }

    /// The people on call break locks, not this service.
    fn directory(&self) -> Option<&dyn Directory> {
        None
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let inner = locktopus::connect_backend(&url).await?;
    let prefix = "billing:";
    let locks = Locktopus::builder(OfTeam { inner, prefix }).build()?;
    let guard = locks.lock("billing:invoices").acquire().await?;
    println!("holds {}", guard.name());
    let refused = locks.lock("shipping:orders").try_acquire().await;
    println!("{}", refused.err().ok_or("another team's lock")?);
    let kept = locks
        .lock("billing:invoices")
        .force_release("stuck since noon")
        .await;
    println!("{}", kept.err().ok_or("broken")?);
    guard.release().await?;
    Ok(())
}
