//! What the table says about the sources, held against them.

use std::path::{Path, PathBuf};

use crate::table::{Change, TestName};

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The file as the change leaves it.
///
/// # Errors
///
/// What it replaces is not in the file exactly once, or is replaced by itself.
pub(crate) fn changed(root: &Path, change: &Change) -> Result<String, String> {
    let text = read(&root.join(&change.file))?;
    if change.find.is_empty() || change.find == change.replace {
        return Err(format!("{}: nothing would change", change.file));
    }
    match text.matches(&change.find).count() {
        1 => Ok(text.replacen(&change.find, &change.replace, 1)),
        count => Err(format!(
            "{} has {count} times, and not once:\n{}",
            change.file,
            change.find.trim_end()
        )),
    }
}

/// Whether the table of mutants in that file has one of that name.
pub(crate) fn names_mutant(root: &Path, file: &str, name: &str) -> Result<(), String> {
    let text = read(&root.join(file))?;
    let (quoted, listed) = (format!("\"{name}\""), format!("\n    {name},\n"));
    match text.contains(&quoted) || text.contains(&listed) {
        true => Ok(()),
        false => Err(format!("{file} has no mutant \"{name}\"")),
    }
}

/// Whether there is such a test. Only a run can tell in which module.
pub(crate) fn has_test(root: &Path, test: &TestName) -> Result<(), String> {
    let package = test.target.folder(root);
    let places = match test.target.name.as_str() {
        "lib" => vec![package.join("src")],
        target => {
            let tests = package.join("tests");
            vec![tests.join(format!("{target}.rs")), tests.join(target)]
        }
    };
    let function = test.name.rsplit("::").next().unwrap_or_default();
    let mut files = Vec::new();
    for place in places {
        collect(&place, &mut files);
    }
    for file in files {
        if declares_test(&read(&file)?, function) {
            return Ok(());
        }
    }
    Err(format!(
        "{} has no test {} in {}",
        test.target.package, test.name, test.target.name
    ))
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) {
    if place.extension().is_some_and(|it| it == "rs") && place.is_file() {
        files.push(place.to_owned());
    }
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        collect(&entry.path(), files);
    }
}

/// Whether a function of that name has an attribute of tests above it.
fn declares_test(text: &str, function: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let plain = format!("fn {function}(");
    let asynchronous = format!("async fn {function}(");
    lines.iter().enumerate().any(|(at, line)| {
        let attributes = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with("#["));
        (line.starts_with(&plain) || line.starts_with(&asynchronous))
            && attributes.clone().any(|line| line.contains("test"))
            && !attributes.clone().any(|line| line.contains("ignore"))
    })
}

#[cfg(test)]
mod tests {
    use super::declares_test;

    #[test]
    fn only_tests_that_run_are_found() {
        let text = "#[tokio::test]\n#[cfg(unix)]\nasync fn one() {}\n\n#[test]\n#[ignore]\nfn two() {}\nfn three() {}\n";
        assert!(declares_test(text, "one"));
        assert!(!declares_test(text, "two"));
        assert!(!declares_test(text, "three"));
        assert!(!declares_test(text, "on"));
    }
}
