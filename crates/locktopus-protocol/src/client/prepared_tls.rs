//! TLS that a program has configured for itself.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

/// TLS as a program has configured it for itself, ready for use.
#[derive(Clone)]
pub struct PreparedTls(Arc<TlsConnector>);

impl PreparedTls {
    /// Takes a configuration as it is.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>) -> Self {
        TlsConnector::from(config).into()
    }

    /// What makes the handshakes.
    pub(crate) fn connector(&self) -> &TlsConnector {
        &self.0
    }
}

impl From<TlsConnector> for PreparedTls {
    fn from(connector: TlsConnector) -> Self {
        Self(Arc::new(connector))
    }
}

/// The configuration may hold keys, so it stays out.
impl fmt::Debug for PreparedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTls").finish_non_exhaustive()
    }
}

/// What is in them cannot be compared; a clone is the same.
impl PartialEq for PreparedTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PreparedTls {}
