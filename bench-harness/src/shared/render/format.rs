//! Numbers as text, the same in every renderer.

/// Shown where a figure does not exist.
pub const NONE: &str = "–";

/// A number with at least three significant digits, and thousands separated.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{value:.1e}"),
        v if v < 0.995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => count(value.round() as u64),
    }
}

/// An integer with thousands separated.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Nanoseconds as microseconds.
#[must_use]
pub fn micros(ns: f64) -> String {
    number(ns / 1_000.0)
}

/// A duration in its natural unit, for labels.
#[must_use]
pub fn duration(ns: u64) -> String {
    let ns = ns as f64;
    let text = |value: f64, unit: &str| {
        let digits = if value.fract() == 0.0 { 0 } else { 1 };
        format!("{value:.digits$} {unit}")
    };
    match ns {
        0.0 => "0".to_owned(),
        v if v < 1e3 => text(v, "ns"),
        v if v < 1e6 => text(v / 1e3, "µs"),
        v if v < 1e9 => text(v / 1e6, "ms"),
        v => text(v / 1e9, "s"),
    }
}

/// Nanoseconds in the unit that suits them. A difference may be negative.
#[must_use]
pub fn natural(ns: f64) -> String {
    let (scale, unit) = match ns.abs() {
        v if v < 1e3 => (1.0, "ns"),
        v if v < 1e6 => (1e3, "µs"),
        v if v < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", number(ns / scale))
}

/// Bytes in binary units.
#[must_use]
pub fn bytes(value: u64) -> String {
    match value {
        0 => "unknown".to_owned(),
        v if v < 1 << 30 => format!("{} MiB", v >> 20),
        v => format!("{:.1} GiB", v as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_whatever_the_size() {
        let cases = [
            (0.0, "0"),
            (0.031, "0.031"),
            (1.5, "1.50"),
            (57.12, "57.1"),
            (999.96, "1,000"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::INFINITY), "∞");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
    }

    #[test]
    fn durations_take_their_natural_unit() {
        let cases = [
            (0, "0"),
            (250, "250 ns"),
            (200_000, "200 µs"),
            (1_500_000, "1.5 ms"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        let cases = [
            (850.0, "850 ns"),
            (57_100.0, "57.1 µs"),
            (-3e6, "-3.00 ms"),
            (2e9, "2.00 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(natural(ns), text);
        }
    }
}
