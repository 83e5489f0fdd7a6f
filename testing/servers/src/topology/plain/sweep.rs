//! Removes the leftovers of dead harnesses.
//!
//! The supervisors normally leave nothing. This handles the rest: a supervisor that was killed
//! itself, or a harness that died before its first server started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::owner::Owner;
use super::run_dir::PREFIX;

/// Ends leftover servers of dead owners and removes their directories. Never fails: the next sweep
/// tries again.
pub(crate) fn sweep() {
    let temp = std::env::temp_dir();
    // Servers first, including those without a directory.
    end_servers(&temp);
    for dir in leftovers(&temp) {
        let _ = std::fs::remove_dir_all(&dir);
    }
}

/// Whether a name in the temporary directory is a run directory of a dead owner.
fn is_of_dead_owner(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(PREFIX)?.parse::<Owner>().ok())
        .is_some_and(|owner| owner.is_dead())
}

/// Other users share the temporary directory and the process list, so this checks the owner.
fn is_ours(path: &Path) -> bool {
    let me = rustix::process::getuid().as_raw();
    let meta = path.symlink_metadata();
    meta.is_ok_and(|meta| meta.is_dir() && meta.uid() == me)
}

fn leftovers(temp: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(temp) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| is_of_dead_owner(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| is_ours(path))
        .collect()
}

#[cfg(target_os = "linux")]
fn end_servers(temp: &Path) {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let Ok(entries) = std::fs::read_dir("/proc") else {
        return;
    };
    for entry in entries.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if !is_leftover_server(&entry.path(), temp) {
            continue;
        }
        // Opens the handle first and repeats the check, so that the signal cannot reach a later
        // process with the same number.
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && is_leftover_server(&entry.path(), temp)
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

/// On other systems only the supervisors clean up.
#[cfg(not(target_os = "linux"))]
fn end_servers(_temp: &Path) {}

#[cfg(target_os = "linux")]
fn is_leftover_server(process: &Path, temp: &Path) -> bool {
    is_ours(process)
        && std::fs::read(process.join("cmdline"))
            .ok()
            .and_then(|line| run_name(&line, temp).map(is_of_dead_owner))
            .unwrap_or(false)
}

/// The name of the run directory of a running server (not of a supervisor).
#[cfg_attr(not(any(target_os = "linux", test)), allow(dead_code))]
fn run_name<'a>(command_line: &'a [u8], temp: &Path) -> Option<&'a OsStr> {
    let mut words = command_line
        .split(|byte| *byte == 0)
        .map(|word| Path::new(OsStr::from_bytes(word)));
    let program = words.next()?.file_name()?;
    if program.as_bytes().ends_with(b"sh") {
        return None;
    }
    words
        .filter_map(|word| word.strip_prefix(temp).ok()?.iter().next())
        .find(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_in_run_directories_match() {
        let temp = Path::new("/tmp");
        let name =
            |line: &'static str| run_name(line.as_bytes(), temp).map(|name| name.to_str().unwrap());
        assert_eq!(
            name("/usr/bin/redis-server\0/tmp/locktopus-run-1-2-3-0/node-0/server.conf\0"),
            Some("locktopus-run-1-2-3-0")
        );
        assert_eq!(name("/bin/sh\0-c\0x\0/tmp/locktopus-run-1-2-3-0\0"), None);
        assert_eq!(name("redis-server\0/var/locktopus-run-1-2-3-0/x\0"), None);
        assert_eq!(name("vi\0/tmp/notes\0"), None);
        assert_eq!(name(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_dead_owners_process_and_files_are_removed() {
        use std::process::Command;

        // The same process id with another start time: a dead owner.
        let me = Owner::me().to_string();
        let (dead, _) = me.rsplit_once('-').unwrap();
        let dir = std::env::temp_dir().join(format!("{PREFIX}{dead}-1-0"));
        let alive = std::env::temp_dir().join(format!("{PREFIX}{me}-999"));
        for dir in [&dir, &alive] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join("log"), "").unwrap();
        }
        let mut server = Command::new("tail")
            .arg("-f")
            .arg(dir.join("log"))
            .spawn()
            .unwrap();
        // A parent continues as soon as its child has given up their shared memory, and the new
        // program may not have its arguments yet.
        let words = format!("/proc/{}/cmdline", server.id());
        while !std::fs::read(&words).unwrap().starts_with(b"tail") {
            std::thread::yield_now();
        }
        sweep();
        assert!(!server.wait().unwrap().success(), "ended by a signal");
        assert!(!dir.exists());
        assert!(alive.exists());
        std::fs::remove_dir_all(alive).unwrap();
    }
}
