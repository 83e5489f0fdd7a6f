//! Tables with aligned columns.

use unicode_width::UnicodeWidthStr as _;

use super::{Style, coloured, visible};

/// Rows under headings.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(headings: [&'static str; N]) -> Self {
        let rows = Vec::new();
        Self { headings, rows }
    }

    /// Adds a row. Escapes characters that would control the terminal.
    pub(crate) fn add(&mut self, row: [String; N]) {
        self.rows.push(row.map(|cell| visible(&cell).into_owned()));
    }

    pub(crate) fn render(&self) -> String {
        let mut widths = self.headings.map(str::len);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded = cells.zip(widths).map(|(cell, width)| {
                format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![coloured(
            Style::Faint,
            &line(&mut self.headings.iter().copied()),
        )];
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| line(&mut row.iter().map(String::as_str))));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["NAME", "KIND"]);
        table.add(["a".to_owned(), "lock".to_owned()]);
        table.add(["größer".to_owned(), "mutex".to_owned()]);
        assert_eq!(table.render(), "NAME    KIND\na       lock\ngrößer  mutex");
        let mut table = Table::new(["NAME", "KIND"]);
        table.add(["\u{1b}[2J".to_owned(), "lock".to_owned()]);
        table.add(["日本".to_owned(), "mutex".to_owned()]);
        assert_eq!(
            table.render(),
            "NAME       KIND\n\\u{1b}[2J  lock\n日本       mutex"
        );
    }
}
