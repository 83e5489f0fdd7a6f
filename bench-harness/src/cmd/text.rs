//! The layout of text for the terminal at hand.

use std::io::IsTerminal as _;

use crate::shared::render::table::Style;

/// As wide as the terminal, or 100 columns without one; colours on a terminal, unless `NO_COLOR` is
/// set.
pub(super) fn style() -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let default = Style::default().width;
    Style {
        width: comfy_table::Table::new().width().unwrap_or(default),
        colour: !no_color && std::io::stdout().is_terminal(),
    }
}
