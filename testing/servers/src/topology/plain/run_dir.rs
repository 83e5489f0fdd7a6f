//! The directory of one deployment, named after its owner to identify leftovers.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::owner::Owner;
use crate::topology::error::TopologyError;

/// The start of every run directory's name.
pub(crate) const PREFIX: &str = "locktopus-run-";

/// A run directory, removed on drop.
#[derive(Debug)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    /// Creates a directory that no other deployment has.
    pub(crate) fn create() -> Result<Self, TopologyError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", Owner::me());
        let path = std::env::temp_dir().join(name);
        // It holds private keys and passwords of test users.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(TopologyError::io("create", &path))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The last part of the path, unique on this machine.
    #[cfg(feature = "pod")]
    pub(crate) fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // Usually gone already: the supervisors remove it, because they can even if the harness
        // cannot.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
