//! Writes SVG. All text from data passes through [`escape`] here.

use std::fmt::Write as _;

/// Escapes the special characters of markup, including quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// The anchor of a text.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// An image under construction. Colours come from classes, so that the page's theme applies.
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    /// An image of `width` by `height` user units; screen readers read `title` and `desc`.
    pub(crate) fn new(width: f64, height: f64, title: &str, desc: &str) -> Self {
        let mut body = String::new();
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            body,
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\"><title>{}</title><desc>{}</desc>",
            escape(title),
            escape(desc)
        );
        Self { body }
    }

    /// As [`new`](Self::new), but as a file of its own: with its size, its style and a background
    /// of the class `bg`.
    pub(crate) fn standalone(
        width: f64,
        height: f64,
        title: &str,
        desc: &str,
        style: &str,
    ) -> Self {
        let mut body = String::new();
        let _ = write!(
            body,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\"><title>{}</title><desc>{}</desc><style>{style}</style>\
             <rect class=\"bg\" x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"10\"/>",
            escape(title),
            escape(desc),
            width - 1.0,
            height - 1.0,
        );
        Self { body }
    }

    /// Opens a group of series number `slot`, which legends switch on and off.
    pub(crate) fn open(&mut self, slot: usize) {
        let _ = write!(
            self.body,
            "<g class=\"s {}\" data-series=\"{slot}\">",
            class(slot)
        );
    }

    /// Closes the group.
    pub(crate) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A line that is thick enough to point at, with a text shown on hover.
    pub(crate) fn bar(&mut self, class: &str, y: f64, from: f64, to: f64, tip: &str) {
        let _ = write!(
            self.body,
            "<line class=\"pt {class}\" x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\">\
             <title>{}</title></line>",
            escape(tip)
        );
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// A line through `points`, broken at every `None`.
    pub(crate) fn curve(&mut self, class: &str, points: &[Option<(f64, f64)>]) {
        let mut path = String::new();
        let mut pen_up = true;
        for point in points {
            if let Some((x, y)) = point {
                let _ = write!(path, "{}{x:.1} {y:.1}", if pen_up { 'M' } else { 'L' });
            }
            pen_up = point.is_none();
        }
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A mark in the shape of series `slot`, with a text shown on hover.
    pub(crate) fn mark(&mut self, class: &str, slot: usize, (x, y): (f64, f64), r: f64, tip: &str) {
        let _ = write!(
            self.body,
            "<path class=\"pt {class}\" d=\"{}\">",
            shape(slot, x, y, r)
        );
        let _ = write!(self.body, "<title>{}</title></path>", escape(tip));
    }

    /// The finished element.
    pub(crate) fn finish(mut self) -> String {
        self.body.push_str("</svg>");
        self.body
    }
}

/// Colours, dashes and shapes repeat with different periods, so that neighbours always differ.
pub(crate) fn class(slot: usize) -> String {
    format!(
        "c{} d{}",
        slot % 8,
        slot % 4 + if slot >= 8 { 1 } else { 0 }
    )
}

fn shape(slot: usize, x: f64, y: f64, r: f64) -> String {
    match slot % 4 {
        0 => format!(
            "M{:.1} {y:.1}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 -{} 0Z",
            x - r,
            2.0 * r,
            2.0 * r
        ),
        1 => {
            let r = r * 0.9;
            format!(
                "M{:.1} {:.1}h{:.1}v{:.1}h-{:.1}Z",
                x - r,
                y - r,
                2.0 * r,
                2.0 * r,
                2.0 * r
            )
        }
        2 => {
            let r = r * 1.25;
            format!(
                "M{x:.1} {:.1}l{r:.1} {r:.1}l-{r:.1} {r:.1}l-{r:.1} -{r:.1}Z",
                y - r
            )
        }
        _ => {
            let r = r * 1.15;
            format!(
                "M{x:.1} {:.1}l{r:.1} {:.1}h-{:.1}Z",
                y - r,
                1.8 * r,
                2.0 * r
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_become_markup() {
        let mut svg = Svg::new(1.0, 1.0, "<script>", "a\"b");
        svg.text("t", (0.0, 0.0), Anchor::Start, "</text><script>&");
        let text = svg.finish();
        assert!(!text.contains("<script>"));
        assert!(text.contains("&lt;/text&gt;&lt;script&gt;&amp;"));
    }
}
