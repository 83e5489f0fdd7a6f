//! The files that make up the scripts, and which script contains which file.

use std::collections::BTreeMap;
use std::path::Path;

use locktopus_protocol::scripts;

/// The folder of the files, from the root of the repository.
const FOLDER: &str = "crates/locktopus-protocol/lua";

/// A shipped script. Several may have the same text.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its names, which end with what the script does.
    pub names: Vec<&'static str>,
    /// Its text.
    pub source: &'static str,
}

/// One file.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its path in the folder of scripts: `part/queue.lua`.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The scripts that contain it, the shortest first.
    pub scripts: Vec<Script>,
}

impl Part {
    /// The names of all scripts that contain it.
    pub fn script_names(&self) -> impl Iterator<Item = &'static str> {
        self.scripts
            .iter()
            .flat_map(|script| script.names.iter().copied())
    }
}

/// Every file, in the order of file names.
///
/// # Errors
///
/// If a file cannot be read, or is in no script or twice in one, because this program was built
/// from other sources.
pub fn read(root: &Path) -> Result<Vec<Part>, String> {
    let mut scripts: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    for script in scripts::all() {
        scripts.entry(script.source).or_default().push(script.name);
    }
    let mut scripts: Vec<_> = scripts
        .into_iter()
        .map(|(source, names)| Script { names, source })
        .collect();
    scripts.sort_by_key(|script| (script.source.len(), script.names.clone()));
    let mut files = Vec::new();
    list(&root.join(FOLDER), "", &mut files)?;
    files.sort();
    files
        .into_iter()
        .map(|(file, text)| part(file, text, &scripts))
        .collect()
}

fn part(file: String, text: String, scripts: &[Script]) -> Result<Part, String> {
    let within: Vec<_> = scripts
        .iter()
        .filter(|script| script.source.contains(&text))
        .cloned()
        .collect();
    if within.is_empty() {
        return Err(format!("no script contains {file}: build this anew"));
    }
    for script in &within {
        if script.source.matches(&text).count() != 1 {
            return Err(format!(
                "{} contains {file} more than once",
                script.names[0]
            ));
        }
    }
    Ok(Part {
        file,
        text,
        scripts: within,
    })
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            list(&path, &format!("{prefix}{name}/"), files)?;
        } else if name.ends_with(".lua") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            files.push((format!("{prefix}{name}"), text));
        }
    }
    Ok(())
}
