//! Renders a run, from stored data only.

mod columns;
pub mod said;
pub mod terminal;
