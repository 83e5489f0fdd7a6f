//! A repository of git for one test.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::path::PathBuf;
use std::process::Command;

/// It is deleted when it is dropped.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) root: PathBuf,
}

impl Repository {
    /// An empty one. No two tests may give it the same name.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("locktopus-prove-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&root).unwrap();
        let repository = Self { root };
        repository.git(&["init", "--quiet"]);
        repository
    }

    /// Writes these files, commits everything there is, and says of which commit a build of that would be.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        self.git(&["add", "--all"]);
        let author = [
            "-c",
            "user.name=nobody",
            "-c",
            "user.email=nobody@localhost",
            "-c",
            "commit.gpgsign=false",
        ];
        self.git(&[&author[..], &["commit", "--quiet", "--message=a change"]].concat());
        self.git(&["rev-parse", "--short", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(&self.root)
            // What the user has set, hooks above all, is nothing to the test.
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        // What is left is in a folder for what is temporary.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
