//! What the tables of the terminal have in common.

use comfy_table::{
    Attribute, Cell as Field, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle,
    Table, presets,
};

/// How to lay out the text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns of the terminal.
    pub width: u16,
    /// Whether to write colour codes.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 100,
            colour: false,
        }
    }
}

/// An empty table with `names` as header.
pub(crate) fn new(names: &[&str], style: Style) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(style.width);
    if style.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(
        names
            .iter()
            .map(|name| Field::new(name).add_attribute(Attribute::Bold)),
    );
    table
}

/// Packs the columns and sets all but the first `text_columns` flush right.
pub(crate) fn align(table: &mut Table, text_columns: usize) {
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if at >= text_columns {
            column.set_cell_alignment(CellAlignment::Right);
            // A number broken over two lines is read as two numbers; names give way instead.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// Breaks `text` at spaces so that no line exceeds `width`, continuing under `indent`.
pub(crate) fn wrap(text: &str, indent: &str, width: u16) -> String {
    let mut lines = String::from(indent);
    let mut used = indent.chars().count();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let fresh = used == indent.chars().count();
        if !fresh && used + 1 + length > usize::from(width) {
            lines.push('\n');
            lines.push_str(indent);
            used = indent.chars().count();
        } else if !fresh {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_keeps_long_words() {
        assert_eq!(wrap("aa bb cc", "  ", 7), "  aa bb\n  cc");
        assert_eq!(wrap("aaaaaaaaaa b", "", 4), "aaaaaaaaaa\nb");
    }
}
