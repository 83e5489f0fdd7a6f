//! The charts of the page, drawn as SVG so that it needs no script to be read.

pub(super) mod cdf;
pub(super) mod dots;
pub(super) mod fairness;
mod lines;
pub(super) mod percentiles;
pub(super) mod scaling;
pub(super) mod timeline;

/// Width of every chart in user units; about what a phone offers in pixels.
const WIDTH: f64 = 460.0;

/// One chart with its heading.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Heading.
    pub(super) title: String,
    /// The image.
    pub(super) svg: String,
}
