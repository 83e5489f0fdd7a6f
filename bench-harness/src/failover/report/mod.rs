//! Renders a run. Everything here works on stored data only.

mod columns;
pub mod html;
pub mod said;
pub mod terminal;
