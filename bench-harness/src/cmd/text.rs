//! Arguments for the layout of text, shared by several subcommands.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};

use crate::shared::render::table::Style;

/// How to lay out text; shared by the subcommands that print tables.
#[derive(Clone, Copy, Debug, Args)]
pub struct TextArgs {
    /// Columns of the table; by default those of the terminal, or 100 without one.
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// When to use colour; `auto` heeds `NO_COLOR`.
    #[arg(long, value_enum, default_value_t)]
    pub color: When,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Even into a file.
    Always,
    /// Not at all.
    Never,
}

impl TextArgs {
    /// The style that these arguments and the terminal ask for.
    #[must_use]
    pub fn style(self) -> Style {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => !no_color && std::io::stdout().is_terminal(),
        };
        let default = Style::default().width;
        let width = self
            .width
            .unwrap_or_else(|| comfy_table::Table::new().width().unwrap_or(default));
        Style { width, colour }
    }
}
