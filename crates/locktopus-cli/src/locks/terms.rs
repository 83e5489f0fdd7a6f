//! On which terms a lock is taken.

use std::time::Duration;

use locktopus::{AnyGuard, LockError, LockGuard, LockRequest, Locktopus};

use super::kind::{Asked, Kind, LockArgs, Request};
use crate::failure::Failure;

/// How long it is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lasting {
    /// Until it is released, by a lease that is renewed: of this length, or what the URL says.
    Renewed(Option<Duration>),
    /// For this long.
    Fixed(Duration),
}

/// On which terms a lock is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) lasting: Lasting,
    pub(crate) max_hold: Option<Duration>,
    /// Zero: it is free as soon as it is given back.
    pub(crate) at_least: Duration,
    /// `None`: for ever. Zero: not at all.
    pub(crate) wait: Option<Duration>,
}

impl Terms {
    /// The request on these terms.
    fn apply<G: AnyGuard>(self, mut request: LockRequest<G>) -> LockRequest<G> {
        request = match self.lasting {
            Lasting::Renewed(Some(lease)) => request.renewed_lease(lease),
            Lasting::Renewed(None) => request,
            Lasting::Fixed(lease) => request.fixed_lease(lease),
        };
        if let Some(hold) = self.max_hold {
            request = request.max_hold(hold);
        }
        if !self.at_least.is_zero() {
            request = request.hold_at_least(self.at_least);
        }
        if let Some(wait) = self.wait {
            request = request.wait_at_most(wait);
        }
        request
    }
}

impl Request {
    /// The same request on these terms.
    pub(crate) fn on(self, terms: Terms) -> Self {
        match self {
            Self::Write(request) => Self::Write(terms.apply(request)),
            Self::Other(request) => Self::Other(terms.apply(request)),
        }
    }
}

/// Whether waiting is allowed at all.
struct Taken {
    at_once: bool,
}

impl Asked for Taken {
    type Output =
        std::pin::Pin<Box<dyn Future<Output = Result<Option<LockGuard>, LockError>> + Send>>;

    fn ask<G: AnyGuard + Into<LockGuard>>(self, request: LockRequest<G>) -> Self::Output {
        Box::pin(async move {
            if self.at_once {
                return Ok(request.try_acquire().await?.map(Into::into));
            }
            match request.acquire().await {
                Ok(guard) => Ok(Some(guard.into())),
                Err(LockError::WaitTimeout { source: None, .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }
}

/// Takes it; `None` if somebody else has it for as long as the terms allow to wait.
pub(crate) async fn acquire(request: Request, terms: Terms) -> Result<Option<LockGuard>, Failure> {
    let at_once = terms.wait.is_some_and(|wait| wait.is_zero());
    Ok(request.on(terms).ask(Taken { at_once }).await?)
}

/// A request for this lock, where the kind is the user's to say: [`Kind::Lock`] if nothing was said.
pub(crate) fn request(
    locks: &Locktopus,
    name: &str,
    args: &LockArgs,
    permits: u32,
) -> Result<Request, Failure> {
    let kind = args.kind()?.unwrap_or(Kind::Lock);
    if permits != 1 && !matches!(kind, Kind::Semaphore | Kind::Permits) {
        return Err(Failure::usage(format!(
            "--permits is for semaphores, not for --kind {}",
            kind.word()
        )));
    }
    Ok(args.request(locks, name, kind, permits))
}
