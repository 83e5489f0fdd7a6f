//! Figures as text, the same in every renderer.

use crate::measure::derive::{Spread, Unit};
pub use crate::shared::render::format::{NONE, bytes, count, duration, micros, natural, number};

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

/// The suffix of a value in `unit`.
#[must_use]
pub const fn suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => " µs",
        Unit::Rtt => " RTT",
        Unit::PerSecond => "/s",
        Unit::Plain => "",
    }
}

/// Beyond this, a percentage means nothing: rounds differ by a multiple of the median, or the
/// median is close to zero.
const WILD_PERCENT: f64 = 100.0;

/// Noise of a figure as `±3 %`; as the smallest and the largest round if there are only two, or if
/// they are far apart.
#[must_use]
pub fn noise(spread: Option<Spread>, unit: Unit) -> String {
    let Some(spread) = spread.filter(|spread| spread.rounds > 1) else {
        return NONE.to_owned();
    };
    match spread.percent() {
        Some(percent) if spread.is_interval() && percent < 0.95 => format!("±{percent:.1}%"),
        Some(percent) if spread.is_interval() && percent < WILD_PERCENT => {
            format!("±{percent:.0}%")
        }
        Some(_) | None => format!("{}–{}", value(spread.min, unit), value(spread.max, unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_a_share_only_of_what_it_can_be_a_share_of() {
        let noise = |rounds: &[f64]| noise(Spread::of(rounds.iter().copied()), Unit::Nanos);
        assert_eq!(noise(&[5_000.0]), NONE);
        assert_eq!(noise(&[9_000.0, 10_000.0, 11_000.0]), "±10%");
        assert_eq!(noise(&[9_990.0, 10_000.0, 10_010.0]), "±0.1%");
        // Two rounds give no interval.
        assert_eq!(noise(&[9_000.0, 11_000.0]), "9.00–11.0");
        // A median close to zero.
        assert_eq!(noise(&[1.0, 1.0, 127_000_000.0]), "0.001–127,000");
        assert_eq!(noise(&[0.0, 0.0, 0.0]), "0–0");
    }
}
