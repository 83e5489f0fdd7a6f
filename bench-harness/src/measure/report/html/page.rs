//! The values for the page template.

use askama::Template;

use super::facts::{self, Card};
use super::headline::HeadlineTable;
use super::section::{self, Section};
use crate::measure::derive;
use crate::measure::model::{HistogramError, Report, Skipped};
use crate::measure::opening;
use crate::measure::report::format;
use crate::measure::summary::SummaryCell;

/// The whole page. Askama escapes every value; only the fields that this crate has made itself
/// (style, script, SVG, escaped JSON) are inserted as they are.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page<'a> {
    report: &'a Report,
    /// In words, the most important first.
    findings: Vec<String>,
    /// The start of the page.
    headlines: Vec<HeadlineTable>,
    headline_note: &'static str,
    cards: Vec<Card>,
    /// What R1 is, if the run has it.
    reference: Option<&'static str>,
    sections: Vec<Section>,
    arguments: String,
    source: &'a str,
    memory: String,
    load: String,
    servers: Vec<(&'static str, String)>,
    /// Caveats from the data, then the runner's notes.
    notes: Vec<String>,
    skipped: &'a [Skipped],
    json: String,
    style: &'static str,
    script: &'static str,
}

impl<'a> Page<'a> {
    /// Collects everything that the page shows of `report`.
    pub(super) fn of(report: &'a Report) -> Result<Self, HistogramError> {
        Ok(Self {
            report,
            findings: opening::findings(report),
            headlines: opening::headlines(&SummaryCell::all(report))
                .into_iter()
                .map(HeadlineTable::from)
                .collect(),
            headline_note: opening::HEADLINE_NOTE,
            cards: facts::cards(report),
            reference: opening::reference(report),
            sections: section::sections(report)?,
            arguments: report.run.command_line.join(" "),
            source: report.harness.git_describe.as_deref().unwrap_or("unknown"),
            memory: format::bytes(report.environment.memory_bytes),
            load: facts::load(report),
            servers: facts::servers(report),
            notes: derive::caveats(report)
                .into_iter()
                .chain(report.notes.clone())
                .collect(),
            skipped: &report.skipped,
            json: super::embedded_json(report),
            style: include_str!("../../../../templates/style.css"),
            script: include_str!("../../../../templates/report.js"),
        })
    }
}
