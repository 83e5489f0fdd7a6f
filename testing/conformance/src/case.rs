//! A case.

use std::future::Future;
use std::pin::Pin;

use crate::ctx::Ctx;
use crate::flavour::Flavour;

/// A running case.
pub type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A test of one rule. Panics if the rule is broken.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub(crate) name: &'static str,
    pub(crate) flavours: &'static [Flavour],
    pub(crate) queue: bool,
    pub(crate) run: fn(Ctx) -> CaseFuture,
}

impl Case {
    /// Module and name, for example `exclusion::one_owner_at_a_time`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The flavours it runs on.
    #[must_use]
    pub fn flavours(&self) -> &'static [Flavour] {
        self.flavours
    }

    /// Whether it needs a queue, and so does not apply to a backend without one.
    #[must_use]
    pub fn needs_queue(&self) -> bool {
        self.queue
    }

    /// Whether it evicts, and so does not apply to a backend without a directory.
    #[must_use]
    pub fn needs_directory(&self) -> bool {
        self.name.contains("eviction")
    }

    /// Starts it.
    #[must_use]
    pub fn run(&self, ctx: Ctx) -> CaseFuture {
        (self.run)(ctx)
    }
}
