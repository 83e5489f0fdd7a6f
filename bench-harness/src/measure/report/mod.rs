//! Renderers of a stored [`crate::measure::model::Report`].

pub mod format;
pub mod html;
pub mod terminal;

pub use crate::shared::render::table::Style;
