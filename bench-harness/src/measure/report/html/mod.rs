//! One self-contained HTML page: it loads nothing, and can be read without its script.

mod charts;
mod facts;
mod headline;
mod page;
mod section;
mod tables;

use askama::Template as _;

use crate::measure::model::{HistogramError, Report, to_json};

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// A stored histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A template could not be rendered.
    #[error("cannot fill the page: {0}")]
    Template(#[from] askama::Error),
}

/// Renders `report`.
///
/// # Errors
///
/// [`HtmlError`] when a stored histogram is damaged.
pub fn render(report: &Report) -> Result<String, HtmlError> {
    Ok(page::Page::of(report)?.render()?)
}

/// The report as JSON for a `<script>` element: no text in it can end the element or open a
/// comment.
fn embedded_json(report: &Report) -> String {
    to_json(report)
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
}
