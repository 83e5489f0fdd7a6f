//! The built peer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::process::Command;

use super::error::RedissonError;
use super::maven;
use super::tools::Tools;

/// Names a jar that was built before, with its `lib` beside it.
const VARIABLE: &str = "LOCKTOPUS_REDISSON_JAR";

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const JAR: &str = "redisson-peer.jar";
/// Written after a successful build, so that the files of an interrupted one are not used.
const STAMP: &str = "built";

/// The built peer, and a Java to run it.
#[derive(Clone, Debug)]
pub struct Jar {
    java: PathBuf,
    file: PathBuf,
}

impl Jar {
    /// The jar that `LOCKTOPUS_REDISSON_JAR` names, or the one in cargo's target directory, which
    /// is built first if it is missing or older than its sources. The first build downloads
    /// Redisson and may take some minutes. Concurrent processes build one after the other.
    ///
    /// # Errors
    ///
    /// [`RedissonError::is_missing`] if this machine lacks a requirement, or the error of the
    /// build.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the build; the next one starts afresh.
    pub async fn find_or_build() -> Result<Self, RedissonError> {
        let tools = Tools::of_environment();
        let java = tools.java().await?;
        if let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
            let file = PathBuf::from(file);
            return if file.is_file() {
                Ok(Self { java, file })
            } else {
                Err(RedissonError::NoSuchJar(file))
            };
        }
        let sources = Path::new(WORKSPACE).join("bench-harness/peers/redisson");
        let into = target_directory().join("redisson-peer");
        let jar = Self {
            java,
            file: into.join(JAR),
        };
        if !is_current(&sources, &into)? {
            tools.check_compiler()?;
            let mvn = tools.maven()?;
            let _lock = maven::lock(&into).await?;
            // Another process may have built it in the meantime.
            if !is_current(&sources, &into)? {
                maven::package(&mvn, &sources, &into).await?;
                let stamp = into.join(STAMP);
                std::fs::write(&stamp, "")
                    .map_err(RedissonError::io(format!("write {}", stamp.display())))?;
            }
        }
        Ok(jar)
    }

    /// The version of Redisson in it.
    ///
    /// # Errors
    ///
    /// [`RedissonError`] if Java does not run it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn version(&self) -> Result<String, RedissonError> {
        let [java, arguments @ ..] = self.command_line("version");
        let asked = Command::new(java)
            .args(arguments)
            .kill_on_drop(true)
            .output();
        let output = asked.await.map_err(RedissonError::io("run Java"))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() && !said.is_empty() {
            Ok(said)
        } else {
            let trouble = String::from_utf8_lossy(&output.stderr);
            Err(RedissonError::Odd(trouble.trim().to_owned()))
        }
    }

    /// A Java that is new enough, for other programs too.
    #[must_use]
    pub fn java(&self) -> &Path {
        &self.java
    }

    /// The folder of Redisson and its dependencies, for another class path.
    #[must_use]
    pub fn libraries(&self) -> PathBuf {
        self.file.with_file_name("lib")
    }

    /// Program and arguments that run one of the jar's programs.
    #[must_use]
    pub fn command_line(&self, program: &str) -> [OsString; 4] {
        [
            self.java.clone().into(),
            "-jar".into(),
            self.file.clone().into(),
            program.into(),
        ]
    }
}

/// The target directory that contains this program, or the workspace's.
fn target_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program
        .ancestors()
        // Cargo marks it for backup programs.
        .find(|dir| dir.join("CACHEDIR.TAG").is_file())
        .map_or_else(|| Path::new(WORKSPACE).join("target"), Path::to_owned)
}

/// Whether the files in `into` were built from the present sources.
fn is_current(sources: &Path, into: &Path) -> Result<bool, RedissonError> {
    let pom = sources.join("pom.xml");
    if !pom.is_file() {
        return Err(RedissonError::NoSources(sources.to_owned()));
    }
    let Ok(built) = modified(&into.join(STAMP)) else {
        return Ok(false);
    };
    let newest = newest(&sources.join("src"), modified(&pom)?)?;
    Ok(into.join(JAR).is_file() && newest < built)
}

/// The newest change in a tree, or `so_far`.
fn newest(path: &Path, so_far: SystemTime) -> Result<SystemTime, RedissonError> {
    let mut newest = so_far.max(modified(path)?);
    if path.is_dir() {
        let read = || RedissonError::io(format!("read {}", path.display()));
        for entry in std::fs::read_dir(path).map_err(read())? {
            newest = self::newest(&entry.map_err(read())?.path(), newest)?;
        }
    }
    Ok(newest)
}

fn modified(path: &Path) -> Result<SystemTime, RedissonError> {
    path.metadata()
        .and_then(|metadata| metadata.modified())
        .map_err(RedissonError::io(format!("look at {}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    fn touch(path: &Path, age: Duration) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::create(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_jar_is_current_until_a_source_changes() {
        let dir = std::env::temp_dir().join(format!("locktopus-jar-{}", std::process::id()));
        let (sources, into) = (dir.join("sources"), dir.join("into"));
        assert!(matches!(
            is_current(&sources, &into),
            Err(RedissonError::NoSources(_))
        ));
        let source = sources.join("src/main/java/Main.java");
        let old = Duration::from_secs(100);
        touch(&sources.join("pom.xml"), old);
        touch(&source, old);
        touch(&into.join(JAR), Duration::ZERO);
        assert!(
            !is_current(&sources, &into).unwrap(),
            "a build that did not end"
        );
        // The directories are new, and their time counts like that of a removed file.
        for made in ["src", "src/main", "src/main/java"] {
            let file = fs::File::open(sources.join(made)).unwrap();
            file.set_modified(SystemTime::now() - old).unwrap();
        }
        touch(&into.join(STAMP), Duration::from_secs(50));
        assert!(is_current(&sources, &into).unwrap());
        touch(&source, Duration::from_secs(10));
        assert!(!is_current(&sources, &into).unwrap(), "a newer source");
        fs::remove_dir_all(&dir).unwrap();
    }
}
