//! Mutants: each small change of each file, with an id that stays the same as long as its line
//! does.

use std::collections::BTreeMap;
use std::fmt;

use locktopus_model::lua::{Interpreter, Replaced};
use serde::{Deserialize, Serialize};

use super::edits::{Edit, edits};
use super::parts::Part;

/// One change of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mutant {
    /// Eight hex digits, which depend only on the line and the change.
    pub id: String,
    /// The file it changes.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The kind of change.
    pub operator: String,
    /// The line, and what is replaced by what.
    pub what: String,
    /// The original text of the file.
    pub before: String,
    /// The changed text.
    pub after: String,
    /// The names of the scripts that contain the file.
    pub scripts: Vec<String>,
}

impl Mutant {
    /// The replacement for scripts.
    #[must_use]
    pub fn replaced(&self) -> Replaced {
        Replaced {
            from: self.before.clone(),
            to: self.after.clone(),
        }
    }
}

/// Every mutant of a file.
///
/// # Errors
///
/// If a script is not Lua.
pub fn of(part: &Part) -> Result<Vec<Mutant>, String> {
    let script = &part.scripts[0];
    let begin = script.source.find(&part.text).unwrap_or(0);
    let end = begin + part.text.len();
    let within = edits(script.source).map_err(|what| format!("{}: {what}", script.names[0]))?;
    let within = within
        .into_iter()
        .filter(|edit| begin <= edit.range.0 && edit.range.1 <= end);
    let lua = Interpreter::new().map_err(|error| error.to_string())?;
    let (mut mutants, mut known) = (Vec::new(), BTreeMap::new());
    for edit in within {
        let mutant = mutant(part, &edit, begin, &mut known);
        // A text that is not Lua says nothing about tests.
        if lua.load(&mutant.replaced().apply(script.source)).is_ok() {
            mutants.push(mutant);
        }
    }
    Ok(mutants)
}

fn mutant(part: &Part, edit: &Edit, begin: usize, known: &mut BTreeMap<String, usize>) -> Mutant {
    let (from, to) = (edit.range.0 - begin, edit.range.1 - begin);
    let text = &part.text;
    let line = 1 + text[..from].matches('\n').count();
    let content = text.lines().nth(line - 1).unwrap_or_default();
    let column = from - text[..from].rfind('\n').map_or(0, |at| at + 1);
    let indent = content.len() - content.trim_start().len();
    let before = &text[from..to];
    let shown = shortened(before);
    let what = format!(
        "{}: `{}` at {}: `{shown}` -> `{}`",
        edit.operator,
        content.trim(),
        column.saturating_sub(indent),
        edit.after.trim(),
    );
    let key = format!("{}\n{what}\n{before}", part.file);
    let number = known.entry(key.clone()).or_default();
    *number += 1;
    let id = sha1_smol::Sha1::from(format!("{key}\n{number}")).digest();
    Mutant {
        id: id.to_string()[..8].to_owned(),
        file: part.file.clone(),
        line,
        operator: edit.operator.to_owned(),
        what,
        before: text.clone(),
        after: format!("{}{}{}", &text[..from], edit.after, &text[to..]),
        scripts: part.script_names().map(str::to_owned).collect(),
    }
}

/// Chooses this many mutants, the same for the same seed. After a change of the scripts, most of
/// the remaining ones are chosen again.
#[must_use]
pub fn sample(mut mutants: Vec<&Mutant>, number: usize, seed: u64) -> Vec<&Mutant> {
    mutants.sort_by_cached_key(|mutant| {
        let digest = sha1_smol::Sha1::from(format!("{seed} {}", mutant.id)).digest();
        digest.bytes()
    });
    mutants.truncate(number);
    mutants
}

/// Reorders the mutants so that files take turns: whenever a run stops, it has tried about as many
/// of each. The seed orders those of a file.
#[must_use]
pub fn in_turn(mutants: Vec<&Mutant>, seed: u64) -> Vec<&Mutant> {
    let all = mutants.len();
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    let mut placed: Vec<(usize, &Mutant)> = Vec::new();
    for mutant in sample(mutants, all, seed) {
        let turn = turns.entry(&mutant.file).or_default();
        placed.push((*turn, mutant));
        *turn += 1;
    }
    placed.sort_by_key(|(turn, mutant)| (*turn, mutant.file.clone()));
    placed.into_iter().map(|(_, mutant)| mutant).collect()
}

/// The first line of a text, with dots if there are more.
fn shortened(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_end();
    match lines.next() {
        Some(_) => format!("{first} ..."),
        None => first.to_owned(),
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:{}: {}", self.id, self.file, self.line, self.what)
    }
}
