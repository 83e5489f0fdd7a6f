//! Looks for the program, as `exec` will, before a lock is taken for it.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::io::Errno;

/// Fails as starting the program would. A program that is found may still fail to start.
pub(super) fn look_up(program: &OsStr) -> io::Result<()> {
    if program.as_bytes().contains(&b'/') {
        return executable(Path::new(program));
    }
    let mut failure = io::Error::from(Errno::NOENT);
    if program.is_empty() {
        return Err(failure);
    }
    let Some(path) = env::var_os("PATH") else {
        // Systems differ in where they look then.
        return Ok(());
    };
    for folder in env::split_paths(&path) {
        match executable(&folder.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

fn executable(file: &Path) -> io::Result<()> {
    let found = file.metadata()?;
    if found.is_file() && found.permissions().mode() & 0o111 != 0 {
        Ok(())
    } else {
        Err(Errno::ACCESS.into())
    }
}
