//! Finding Java and Maven.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::RedissonError;

/// The oldest Java that the peer is compiled for.
const OLDEST_JAVA: u32 = 17;

/// The places to search for programs.
#[derive(Debug)]
pub(super) struct Tools {
    java_home: Option<PathBuf>,
    path: OsString,
}

impl Tools {
    pub(super) fn of_environment() -> Self {
        Self {
            java_home: std::env::var_os("JAVA_HOME")
                .filter(|home| !home.is_empty())
                .map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// A `java` that is new enough.
    pub(super) async fn java(&self) -> Result<PathBuf, RedissonError> {
        let java = self
            .java_program("java")
            .ok_or_else(|| self.no_java("java"))?;
        let output = Command::new(&java).arg("-version").output().await;
        let output = output.map_err(RedissonError::io(format!("run {}", java.display())))?;
        // It prints its version to standard error.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match major_version(&said) {
            Some(version) if version >= OLDEST_JAVA => Ok(java),
            Some(version) => Err(RedissonError::NoJdk(format!(
                "{} is Java {version}, and {OLDEST_JAVA} is needed",
                java.display()
            ))),
            None => Err(RedissonError::NoJdk(format!(
                "{} does not tell its version: {}",
                java.display(),
                said.lines().next().unwrap_or_default()
            ))),
        }
    }

    /// Whether there is a compiler; Maven needs it.
    pub(super) fn check_compiler(&self) -> Result<(), RedissonError> {
        match self.java_program("javac") {
            Some(_) => Ok(()),
            None => Err(self.no_java("javac")),
        }
    }

    pub(super) fn maven(&self) -> Result<PathBuf, RedissonError> {
        self.in_path("mvn").ok_or(RedissonError::NoMaven)
    }

    /// A program of the JDK. `JAVA_HOME` takes precedence, as it does for Maven.
    fn java_program(&self, name: &str) -> Option<PathBuf> {
        match &self.java_home {
            Some(home) => Some(home.join("bin").join(name)).filter(|program| program.is_file()),
            None => self.in_path(name),
        }
    }

    fn in_path(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .map(|dir| dir.join(name))
            .find(|program| program.is_file())
    }

    fn no_java(&self, name: &str) -> RedissonError {
        RedissonError::NoJdk(match self.java_home.as_deref().map(Path::display) {
            Some(home) => format!("JAVA_HOME is {home}, which has no bin/{name}"),
            None => {
                format!("PATH has no {name} (Debian's package default-jdk-headless)")
            }
        })
    }
}

/// The 17 of `openjdk version "17.0.15" 2025-04-15`, and the 8 of `java version "1.8.0_402"`.
fn major_version(said: &str) -> Option<u32> {
    let (_, version) = said.split_once("version \"")?;
    let mut numbers = version.split(['.', '"', '-', '_', '+']);
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        major => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_old_and_new() {
        for (said, version) in [
            ("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK", Some(17)),
            (
                "Picked up X: -Y\nopenjdk version \"26-ea\" 2026-03-17",
                Some(26),
            ),
            ("java version \"1.8.0_402\"", Some(8)),
            ("openjdk version \"21\" 2023-09-19", Some(21)),
            ("Error: could not find libjava.so", None),
        ] {
            assert_eq!(major_version(said), version, "{said}");
        }
    }

    #[tokio::test]
    async fn what_is_missing_is_named() {
        let nothing = Tools {
            java_home: None,
            path: OsString::from("/nonexistent"),
        };
        let error = nothing.java().await.unwrap_err();
        assert!(
            error.is_missing() && error.to_string().starts_with("no JDK: PATH has no java"),
            "{error}"
        );
        assert!(matches!(nothing.maven(), Err(RedissonError::NoMaven)));

        // A wrong choice is not replaced by a program in PATH.
        let wrong = Tools {
            java_home: Some("/nonexistent".into()),
            path: OsString::from("/usr/bin"),
        };
        let error = wrong.check_compiler().unwrap_err().to_string();
        assert!(
            error.contains("/nonexistent") && error.contains("bin/javac"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_old_java_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = std::env::temp_dir().join(format!("locktopus-java-8-{}", std::process::id()));
        let bin = home.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let java = bin.join("java");
        std::fs::write(&java, "#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n").unwrap();
        std::fs::set_permissions(&java, std::fs::Permissions::from_mode(0o755)).unwrap();
        let tools = Tools {
            java_home: Some(home.clone()),
            path: OsString::new(),
        };
        let error = tools.java().await.unwrap_err();
        std::fs::remove_dir_all(&home).unwrap();
        assert!(
            error.is_missing() && error.to_string().contains("is Java 8, and 17 is needed"),
            "{error}"
        );
    }
}
