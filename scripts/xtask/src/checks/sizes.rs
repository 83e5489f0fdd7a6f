//! Limits the sizes of files and of the repository.

use std::fs;

use crate::failure::{Done, fail};
use crate::files;
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = "\
Checks that no source file has over 400 lines without its unit tests, and that the repository stays within its limits.

Usage: scripts/check-sizes";

const LIMIT: usize = 400;

/// The budgets in lines. Raising one is a decision. The aims are in docs/adr/0044.
const BUDGETS: [Budget; 5] = [
    Budget {
        what: "sources outside the product: testing, proof, harness, examples, scripts",
        limit: 76_400,
        paths: &[
            "testing/*.rs",
            "proof/*.rs",
            "bench-harness/*.rs",
            "examples/*.rs",
            "scripts/*.rs",
        ],
        not: &["/tests/", "/benches/"],
    },
    Budget {
        what: "tests",
        limit: 61_800,
        paths: &["*/tests/*.rs", "*/client-tests/*.rs", "*/benches/*.rs"],
        not: &[],
    },
    Budget {
        what: "lines of shell",
        limit: 550,
        paths: &["scripts", ".ci", "proof/run", "docker/make-certs"],
        not: &[".rs", ".toml", ".py"],
    },
    Budget { what: "docs/testing.md", limit: 150, paths: &["docs/testing.md"], not: &[] },
    Budget { what: "docs/performance.md", limit: 200, paths: &["docs/performance.md"], not: &[] },
];

struct Budget {
    what: &'static str,
    limit: usize,
    /// Patterns for `git ls-files`.
    paths: &'static [&'static str],
    /// Files with one of these in their path do not count.
    not: &'static [&'static str],
}

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    let mut too_long = Vec::new();
    for folder in files::source_folders(sh)? {
        for file in files::below(&folder, ".rs")? {
            let lines = files::without_tests(&fs::read_to_string(&file)?).len();
            if lines > LIMIT {
                too_long.push(format!(
                    "{}: {lines} lines, {} too many",
                    files::shown(sh, &file),
                    lines - LIMIT
                ));
            }
        }
    }
    if !too_long.is_empty() {
        fail!("{}\nsplit them: one reason to exist for each file", too_long.join("\n"));
    }
    say(format!("no source file is over {LIMIT} lines"));
    for budget in &BUDGETS {
        let (what, limit, found) = (budget.what, budget.limit, budget.lines(sh)?);
        say(format!("{what}: {found} of {limit} lines"));
        if found > limit {
            fail!(
                "{what} is over its budget: take something away, or decide otherwise in scripts/xtask/src/checks/sizes.rs"
            );
        }
    }
    Ok(())
}

impl Budget {
    fn lines(&self, sh: &Shell) -> Done<usize> {
        let files = sh.cmd("git").arg("ls-files").args(self.paths).read()?;
        let counted = files.lines().filter(|file| !self.not.iter().any(|part| file.contains(part)));
        // git still lists a file that is deleted but not committed.
        Ok(counted.filter_map(|file| fs::read(sh.root.join(file)).ok()).map(lines).sum())
    }
}

fn lines(text: Vec<u8>) -> usize {
    text.into_iter().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_do_not_count() {
        let text = "one\n#[cfg(test)]\nuse two;\n    #[cfg(test)]\n    pub(crate) mod tests {\n}\n";
        assert_eq!(files::without_tests(text), ["one", "#[cfg(test)]", "use two;"]);
        assert_eq!(files::without_tests("#[cfg(test)]\nmodify();\n").len(), 2);
    }

    /// A budget whose paths match nothing would always be kept.
    #[test]
    fn every_budget_counts_something() {
        let sh = crate::made_up::on_the_real_path();
        for budget in &BUDGETS {
            assert!(budget.lines(&sh).unwrap() > 10, "{}", budget.what);
        }
    }
}
