//! Figures as text, the same in every renderer.

use crate::measure::derive::{Spread, Unit};
pub use crate::shared::render::format::{NONE, bytes, count, duration, micros, number};

/// A median in `unit`, without the unit.
#[must_use]
pub fn median(spread: Option<Spread>, unit: Unit) -> String {
    spread.map_or_else(|| NONE.to_owned(), |spread| value(spread.median, unit))
}

/// A value in `unit`, without the unit.
#[must_use]
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanos => micros(value),
        Unit::Rtt | Unit::PerSecond | Unit::Plain => number(value),
    }
}

/// What follows a value in `unit`.
#[must_use]
pub const fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => " µs",
        Unit::Rtt => " RTT",
        Unit::PerSecond => "/s",
        Unit::Plain => "",
    }
}

/// Noise of a figure as `±3 %`.
#[must_use]
pub fn noise(spread: Option<Spread>) -> String {
    match spread.and_then(|spread| spread.percent()) {
        None => NONE.to_owned(),
        Some(percent) if percent < 0.95 => format!("±{percent:.1}%"),
        Some(percent) => format!("±{percent:.0}%"),
    }
}
