//! Of which commit the build was that made what is kept.

use std::collections::BTreeSet;

use serde::Deserialize;

/// What a version ends with that is not of its commit alone.
const NO_COMMIT: [&str; 2] = ["-dirty", "-stale"];

#[derive(Debug, Deserialize)]
struct Made {
    harness: Harness,
}

#[derive(Debug, Deserialize)]
struct Harness {
    git_describe: Option<String>,
    build_profile: String,
}

/// The commit of the build that made all of these runs of the harness.
///
/// # Errors
///
/// If there are several, or one was of no commit or no release build.
pub(crate) fn of(runs: &[String]) -> Result<String, String> {
    let mut builds = BTreeSet::new();
    for line in runs {
        let made: Made =
            serde_json::from_str(line).map_err(|error| format!("a run that is kept: {error}"))?;
        let Harness {
            git_describe,
            build_profile,
        } = made.harness;
        let commit = git_describe.ok_or("a run is of no commit")?;
        if NO_COMMIT.iter().any(|end| commit.ends_with(end)) || build_profile != "release" {
            return Err(format!("a run is of {commit}, {build_profile} build"));
        }
        builds.insert(commit);
    }
    match builds.len() {
        1 => Ok(builds.into_iter().next().unwrap_or_default()),
        _ => Err(format!("runs of several builds: {builds:?}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;

    #[test]
    fn runs_are_of_one_build_of_a_commit() {
        let run = |build: &str, profile: &str| {
            format!(
                r#"{{"harness": {{"git_describe": "{build}", "build_profile": "{profile}"}}, "cells": []}}"#
            )
        };
        let fine = run("0cebab8", "release");
        assert_eq!(of(&[fine.clone(), fine.clone()]).unwrap(), "0cebab8");
        assert!(of(&[fine.clone(), run("1234567", "release")]).is_err());
        assert!(of(&[run("0cebab8-stale", "release")]).is_err());
        assert!(of(&[run("0cebab8-dirty", "release")]).is_err());
        assert!(of(&[run("0cebab8", "debug")]).is_err());
        assert!(of(&[]).is_err());
    }
}
