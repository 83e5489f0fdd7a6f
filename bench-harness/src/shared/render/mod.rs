//! What renderers of both programs draw with.

pub(crate) mod format;
pub(crate) mod scale;
pub(crate) mod svg;
pub mod table;
