//! A mutant as cargo-mutants lists it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use crate::text::Place;

/// One mutant. Its number among those of its package chooses it while tests run; 0 is none.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) number: usize,
    pub(crate) file: String,
    /// What cargo-mutants calls it, without file, line and column.
    pub(crate) name: String,
    pub(crate) genre: String,
    pub(crate) replacement: String,
    pub(crate) range: (Place, Place),
    /// Where the function around it begins.
    pub(crate) function: Option<Place>,
    pub(crate) returns: String,
}

impl Mutant {
    /// Which bytes of its file it replaces.
    pub(crate) fn bytes(&self, source: &str) -> Range<usize> {
        self.range.0.byte(source)..self.range.1.byte(source)
    }

    /// Its file with it.
    pub(crate) fn applied(&self, source: &str) -> String {
        let mut text = source.to_owned();
        text.replace_range(self.bytes(source), &self.replacement);
        text
    }

    fn read(number: usize, value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (_, name) = value["name"].as_str()?.split_once(": ")?;
        let words: Vec<_> = name.split_whitespace().collect();
        let (span, function) = (&value["span"], &value["function"]);
        Some(Self {
            number,
            file: text(&value["file"])?,
            name: words.join(" "),
            genre: text(&value["genre"])?,
            replacement: text(&value["replacement"])?,
            range: (Place::read(&span["start"])?, Place::read(&span["end"])?),
            function: Place::read(&function["span"]["start"]),
            returns: text(&function["return_type"]).unwrap_or_default(),
        })
    }
}

/// What `cargo mutants --list --json` wrote, by file.
pub(crate) fn read(list: &Path) -> Result<BTreeMap<String, Vec<Mutant>>, String> {
    let at = |error: String| format!("{}: {error}", list.display());
    let text = std::fs::read_to_string(list).map_err(|error| at(error.to_string()))?;
    let values: Vec<Value> = serde_json::from_str(&text).map_err(|error| at(error.to_string()))?;
    let mut files: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
    for (before, value) in values.iter().enumerate() {
        let mutant =
            Mutant::read(before + 1, value).ok_or_else(|| at(format!("what is {value}?")))?;
        files.entry(mutant.file.clone()).or_default().push(mutant);
    }
    if files.is_empty() {
        return Err(at("no mutants".to_owned()));
    }
    Ok(files)
}
