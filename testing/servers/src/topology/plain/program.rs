//! Finding the server program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::topology::error::TopologyError;

/// Environment variable that names the server program.
const VARIABLE: &str = "LOCKTOPUS_SERVER_BIN";

/// The explicit choice, or the environment's, or the first one in the search path.
pub(crate) fn find(explicit: Option<&Path>) -> Result<PathBuf, TopologyError> {
    find_in(
        explicit,
        std::env::var_os(VARIABLE).filter(|value| !value.is_empty()),
        std::env::var_os("PATH").unwrap_or_default(),
    )
}

fn find_in(
    explicit: Option<&Path>,
    variable: Option<OsString>,
    path: OsString,
) -> Result<PathBuf, TopologyError> {
    // A choice that does not exist is an error, not a reason to test some other server.
    if let Some(chosen) = explicit
        .map(Path::to_owned)
        .or_else(|| variable.map(PathBuf::from))
    {
        return if chosen.is_file() {
            Ok(chosen)
        } else {
            Err(TopologyError::NoServerProgram {
                tried: chosen.display().to_string(),
            })
        };
    }
    ["redis-server", "valkey-server"]
        .into_iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |dir| dir.join(name)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| TopologyError::NoServerProgram {
            tried: "redis-server and valkey-server in PATH".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_choice_is_not_replaced() {
        let missing = Path::new("/nonexistent/server");
        let sh_dir = OsString::from("/bin");
        assert!(find_in(Some(missing), Some("/bin/sh".into()), sh_dir.clone()).is_err());
        assert!(find_in(None, Some("/bin/sh".into()), sh_dir).is_ok());
        assert!(find_in(None, None, OsString::new()).is_err());
    }
}
