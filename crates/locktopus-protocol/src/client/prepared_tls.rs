//! TLS that a program has configured itself.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

/// A TLS configuration of the program's own, ready for use.
#[derive(Clone)]
pub struct PreparedTls(Arc<TlsConnector>);

impl PreparedTls {
    /// Wraps a configuration unchanged.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>) -> Self {
        TlsConnector::from(config).into()
    }

    /// The connector that performs handshakes.
    pub(crate) fn connector(&self) -> &TlsConnector {
        &self.0
    }
}

impl From<TlsConnector> for PreparedTls {
    fn from(connector: TlsConnector) -> Self {
        Self(Arc::new(connector))
    }
}

/// Leaves out the configuration, because it may hold keys.
impl fmt::Debug for PreparedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTls").finish_non_exhaustive()
    }
}

/// Configurations cannot be compared, so only clones are equal.
impl PartialEq for PreparedTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PreparedTls {}
