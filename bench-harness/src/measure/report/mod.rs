//! Renderers of a stored [`crate::measure::model::Report`].

pub mod compare;
pub mod compare_terminal;
pub mod csv;
mod differences;
pub mod format;
pub mod hgrm;
pub mod html;
pub mod terminal;

pub use crate::shared::render::table::Style;
