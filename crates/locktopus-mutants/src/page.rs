//! The table in docs/testing.md: of each file how many mutants there are, what notices them, and how many survive.

use std::collections::BTreeMap;
use std::path::Path;

use crate::mutants::Mutant;
use crate::survivors::Survivors;
use crate::verdict::Verdict;

const PAGE: &str = "docs/testing.md";
const BEGIN: &str = "<!-- mutants: begin -->\n";
const END: &str = "<!-- mutants: end -->";

#[derive(Debug, Default)]
struct Row {
    chosen: usize,
    tried: usize,
    model: usize,
    conformance: usize,
    others: usize,
    transcripts: usize,
    survived: usize,
    explained: usize,
}

impl Row {
    fn count(&mut self, verdict: &Verdict, explained: bool) {
        self.tried += 1;
        match verdict {
            Verdict::Killed { level, .. } if level == "model" => self.model += 1,
            Verdict::Killed { level, .. } if level.starts_with("conformance") => {
                self.conformance += 1;
            }
            Verdict::Killed { level, .. } if level == "transcripts" => self.transcripts += 1,
            Verdict::Killed { .. } => self.others += 1,
            Verdict::Observable { .. }
            | Verdict::Unseen
            | Verdict::Unnoticed
            | Verdict::Alike
            | Verdict::NotCalled => {
                self.survived += 1;
                self.explained += usize::from(explained);
            }
        }
    }

    fn line(&self, file: &str) -> String {
        let rate = self.survived as f64 * 100.0 / self.tried.max(1) as f64;
        format!(
            "| {file} | {} | {} | {} | {} | {} | {} | {} | {} | {rate:.1} % |\n",
            self.chosen,
            self.tried,
            self.model,
            self.conformance,
            self.others,
            self.transcripts,
            self.survived,
            self.explained
        )
    }
}

/// The table of a run: of the mutants that were chosen, what became of those that were tried. Which tests noticed one is those
/// that it was shown to first, and these are the transcripts; others may notice it as well.
#[must_use]
pub fn table(
    chosen: &[&Mutant],
    verdicts: &[(&Mutant, &Verdict)],
    survivors: &Survivors,
) -> String {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut total = Row::default();
    for mutant in chosen {
        rows.entry(&mutant.file).or_default().chosen += 1;
        total.chosen += 1;
    }
    for (mutant, verdict) in verdicts {
        let explained = survivors.has(mutant);
        rows.entry(&mutant.file)
            .or_default()
            .count(verdict, explained);
        total.count(verdict, explained);
    }
    let head = "| file | mutants | tried | noticed by the model | by conformance | by other tests | by transcripts | survive | \
                explained | survive |\n\
                |---|---|---|---|---|---|---|---|---|---|\n";
    let lines = rows
        .iter()
        .map(|(file, row)| row.line(&format!("`{file}`")));
    format!("{head}{}{}", lines.collect::<String>(), total.line("all"))
}

/// Writes the table of a run into the page.
///
/// # Errors
///
/// If there is no page, or no place for it.
pub fn write(root: &Path, run: &str, table: &str) -> Result<(), String> {
    let path = root.join(PAGE);
    let failed = |error: std::io::Error| format!("{PAGE}: {error}");
    let page = std::fs::read_to_string(&path).map_err(failed)?;
    let place = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = place.ok_or_else(|| format!("{PAGE} has no place for the table"))?;
    let text = format!("{before}{BEGIN}{run}\n\n{table}{END}{after}");
    std::fs::write(&path, text).map_err(failed)
}
