//! The opening of report and page: one lock that many workers want, ours beside others, in words,
//! as a table and as a picture.

mod findings;
mod headline;
mod picture;

pub use findings::{findings, reference};
pub use headline::{HEADLINE_COLUMNS, HEADLINE_NOTE, Headline, HeadlineRow, Who, headlines};
pub use picture::picture;
