//! Building the peer with Maven.

use std::fs::File;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::error::RedissonError;

/// The first build downloads some 40 MB.
const BUILD_WITHIN: Duration = Duration::from_secs(300);
/// How often to check whether another process has finished its build.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maven's messages if a repository does not answer or lacks something.
const DOWNLOAD_TROUBLE: [&str; 4] = [
    "Could not transfer",
    "Could not resolve",
    "Cannot access",
    "could not be resolved",
];
const LINES_SHOWN: usize = 6;

/// Keeps other processes from building into the same directory until it is dropped.
pub(super) async fn lock(into: &Path) -> Result<File, RedissonError> {
    let path = into.join("lock");
    let failed = || RedissonError::io(format!("lock {}", path.display()));
    std::fs::create_dir_all(into).map_err(failed())?;
    let file = File::create(&path).map_err(failed())?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => sleep(LOOK_EVERY).await,
            Err(error) => return Err(failed()(error.into())),
        }
    }
}

/// Builds the sources in `sources`.
pub(super) async fn package(mvn: &Path, sources: &Path, into: &Path) -> Result<(), RedissonError> {
    let mut directory = std::ffi::OsString::from("-Dpeer.directory=");
    directory.push(into);
    // Maven uses its local repository first, so this also works offline.
    let building = Command::new(mvn)
        .args(["--batch-mode", "--quiet", "--file"])
        .arg(sources.join("pom.xml"))
        .arg(directory)
        .arg("package")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(BUILD_WITHIN, building).await {
        Ok(output) => output.map_err(RedissonError::io(format!("run {}", mvn.display())))?,
        Err(_) => {
            return Err(RedissonError::NoDownload(format!(
                "it was not done after {BUILD_WITHIN:?}"
            )));
        }
    };
    if output.status.success() {
        return Ok(());
    }
    Err(blame(&output))
}

fn blame(output: &Output) -> RedissonError {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<&str> = said
        .lines()
        .map(|line| line.trim_start_matches("[ERROR]").trim())
        .filter(|line| !line.is_empty())
        .take(LINES_SHOWN)
        .collect();
    let shown = lines.join("\n");
    if DOWNLOAD_TROUBLE.iter().any(|words| said.contains(words)) {
        RedissonError::NoDownload(shown)
    } else {
        RedissonError::Build(format!("{}\n{shown}", output.status))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn said(text: &str) -> RedissonError {
        blame(&Output {
            status: ExitStatus::from_raw(256),
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
        })
    }

    #[test]
    fn a_machine_without_network_is_told_from_a_bad_source() {
        let offline = said(
            "[ERROR] Failed to execute goal: Could not transfer artifact x from central: Network is unreachable",
        );
        assert!(offline.is_missing(), "{offline}");
        let bad = said("[ERROR] COMPILATION ERROR :\n[ERROR] Main.java:[3,1] ';' expected");
        assert!(!bad.is_missing());
        assert!(bad.to_string().contains("';' expected"), "{bad}");
    }

    #[tokio::test]
    async fn builds_wait_for_each_other() {
        let dir = std::env::temp_dir().join(format!("locktopus-lock-{}", std::process::id()));
        let first = lock(&dir).await.unwrap();
        assert!(timeout(LOOK_EVERY * 3, lock(&dir)).await.is_err());
        drop(first);
        assert!(timeout(LOOK_EVERY * 50, lock(&dir)).await.is_ok());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
