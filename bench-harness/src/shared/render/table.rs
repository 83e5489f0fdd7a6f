//! Common parts of the terminal tables.

use comfy_table::{
    Attribute, Cell as Field, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle,
    Table, Width, presets,
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

/// Packs the columns and right-aligns all except the first `text_columns`.
///
/// Names break only at spaces, and figures do not break at all: a number over two lines reads as
/// two numbers.
pub(crate) fn align(table: &mut Table, text_columns: usize) {
    let widths = narrowest(table, text_columns);
    for (column, width) in table.column_iter_mut().zip(widths) {
        column.set_padding((0, 1));
        // With the padding.
        let width = Width::Fixed(width.saturating_add(1));
        if column.index < text_columns {
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
        } else {
            column.set_cell_alignment(CellAlignment::Right);
            // Headings may take several lines, and leave the room to names.
            column.set_constraint(ColumnConstraint::Absolute(width));
        }
    }
}

/// The minimum width of each column: the longest word of its heading and of names, and the longest
/// figure.
fn narrowest(table: &Table, text_columns: usize) -> Vec<u16> {
    let mut widths = Vec::new();
    let mut raise = |at: usize, length: usize| {
        widths.resize(widths.len().max(at + 1), 0);
        widths[at] = u16::try_from(length).unwrap_or(u16::MAX).max(widths[at]);
    };
    let word = |text: &str| {
        let words = text.split_whitespace().map(|word| word.chars().count());
        words.max().unwrap_or(0)
    };
    let headings = table.header().into_iter().flat_map(|row| row.cell_iter());
    for (at, field) in headings.enumerate() {
        raise(at, word(&field.content()));
    }
    for row in table.row_iter() {
        for (at, field) in row.cell_iter().enumerate() {
            let content = field.content();
            let is_name = at < text_columns;
            raise(
                at,
                if is_name {
                    word(&content)
                } else {
                    content.chars().count()
                },
            );
        }
    }
    widths
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
    fn only_headings_and_names_take_several_lines() {
        // Twenty columns are too few even for the words, so the table is wider.
        for width in [30, 20] {
            let colour = false;
            let mut table = new(
                &["who", "commands per acquisition"],
                Style { width, colour },
            );
            table.add_row(["redis-rs · sentinel/6", "within noise"]);
            align(&mut table, 1);
            let text = table.to_string();
            for whole in [
                "redis-rs",
                "sentinel/6",
                "within noise",
                "commands",
                "acquisition",
            ] {
                assert!(text.contains(whole), "{whole} in {width}\n{text}");
            }
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(width == 20 || widest <= Some(30), "{text}");
            assert!(!text.contains("per acquisition") || width == 20, "{text}");
        }
    }

    #[test]
    fn wraps_at_spaces_and_keeps_long_words() {
        assert_eq!(wrap("aa bb cc", "  ", 7), "  aa bb\n  cc");
        assert_eq!(wrap("aaaaaaaaaa b", "", 4), "aaaaaaaaaa\nb");
    }
}
