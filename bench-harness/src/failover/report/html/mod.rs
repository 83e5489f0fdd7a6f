//! One self-contained HTML page, in the clothes of the benchmark's report: no request leaves it,
//! and it can be read without its script.

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
