//! The drawing tools of both programs' renderers.

pub(crate) mod format;
pub(crate) mod scale;
pub(crate) mod svg;
pub mod table;
