//! Certificates for the TLS topology, new for every deployment.
//!
//! Also makes a second authority that signed nothing, for tests of refusals. Needs the cargo
//! feature `tls`.

#[cfg(feature = "tls")]
mod make;

use std::path::{Path, PathBuf};

use crate::topology::error::TopologyError;

/// PEM texts of one deployment.
#[derive(Clone)]
pub(crate) struct Certificates {
    authority: String,
    stranger: String,
    server: String,
    server_key: String,
}

impl Certificates {
    /// Makes an authority, a certificate for the loopback names, and an unrelated authority.
    #[cfg(feature = "tls")]
    pub(crate) fn make() -> Result<Self, TopologyError> {
        make::certificates().map_err(|error| TopologyError::Certificates {
            message: error.to_string(),
        })
    }

    /// Not available in this build.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn make() -> Result<Self, TopologyError> {
        Err(TopologyError::Certificates {
            message: "this program was built without them: build it with the cargo feature `tls`"
                .to_owned(),
        })
    }

    /// Server option, file name and content, for every file the server reads.
    pub(crate) fn server_files(&self) -> [(&'static str, &'static str, &str); 3] {
        [
            ("tls-ca-cert-file", "ca.pem", &self.authority),
            ("tls-cert-file", "server.pem", &self.server),
            ("tls-key-file", "server.key", &self.server_key),
        ]
    }

    /// Writes the clients' files into `dir`.
    pub(crate) fn write_client_files(&self, dir: &Path) -> Result<TlsFiles, TopologyError> {
        let files = TlsFiles {
            ca: dir.join("ca.pem"),
            untrusted_ca: dir.join("untrusted-ca.pem"),
        };
        for (path, text) in [
            (&files.ca, &self.authority),
            (&files.untrusted_ca, &self.stranger),
        ] {
            std::fs::write(path, text).map_err(TopologyError::io("write", path))?;
        }
        Ok(files)
    }
}

/// Files that clients of the TLS topology need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The authority that signed the server's certificate.
    pub ca: PathBuf,
    /// An authority that did not: a client that trusts only this one must refuse the server.
    pub untrusted_ca: PathBuf,
}
