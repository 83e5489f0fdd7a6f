//! One self-contained HTML page in the style of the benchmark's report: it loads nothing, and can
//! be read without its script.

mod page;
mod rates;
mod timeline;

use askama::Template as _;

use crate::failover::model::FailoverReport;

/// Renders `report`.
///
/// # Errors
///
/// When the template cannot be filled.
pub fn render(report: &FailoverReport) -> Result<String, askama::Error> {
    page::Page::of(report).render()
}
