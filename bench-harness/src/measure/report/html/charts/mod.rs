//! The charts of the page, drawn as SVG, so they need no script.

pub(super) mod dots;
mod lines;
pub(super) mod percentiles;
pub(super) mod scaling;

/// Width of every chart in user units; about a phone's width in pixels.
const WIDTH: f64 = 460.0;

/// The place for the names of rows: beside their marks while they are short, otherwise above them.
/// They are never cut, because the cut part may be what tells two of them apart.
#[derive(Clone, Copy, Debug)]
struct Label {
    /// The left end of the marks.
    left: f64,
    /// How far above the marks a name goes.
    above: f64,
}

impl Label {
    /// Room beside the marks.
    const BESIDE: f64 = 182.0;
    const LETTER: f64 = 6.3;

    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let wide = longest as f64 * Self::LETTER + 10.0;
        if wide > Self::BESIDE {
            Self {
                left: 8.0,
                above: 15.0,
            }
        } else {
            Self {
                left: wide.max(76.0),
                above: 0.0,
            }
        }
    }
}

/// One chart with its heading.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Heading.
    pub(super) title: String,
    /// The image.
    pub(super) svg: String,
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn long_names_stand_above_their_marks() {
        let short = Label::of(["redis-rs · cluster/6 · lock"].into_iter());
        assert!(short.above == 0.0 && short.left > 76.0);
        let long = "fred · standalone · redis 7.0.15 · plain · fair-lock";
        let long = Label::of(["fred", long].into_iter());
        assert!(long.above > 0.0 && long.left < short.left);
    }
}
