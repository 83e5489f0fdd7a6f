//! Numbers as a server reads and writes them.

use crate::redis::reply::{NOT_AN_INTEGER, Refusal};

/// Parses an integer as strictly as a server: no spaces, no plus, no leading zeros.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub(crate) fn integer_or_error(text: &[u8]) -> Result<i64, Refusal> {
    integer(text).ok_or_else(|| NOT_AN_INTEGER.into())
}

/// Parses a floating-point number, but not NaN.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Formats a number like C's `%.17g`.
pub(crate) fn general(number: f64) -> String {
    const DIGITS: i32 = 17;
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if number.is_nan() {
        return if number.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if number.fract() == 0.0 && number.abs() < 1e17 {
        // Most numbers in scripts are whole, and integers are formatted much faster.
        return match truncated(number) {
            0 if number.is_sign_negative() => "-0".to_owned(),
            whole => whole.to_string(),
        };
    }
    let scientific = format!("{number:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// Truncates a Lua number to an integer, as C on a 64-bit machine does.
pub(crate) fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "that is what a server does"
        )]
        let whole = number as i64;
        return whole;
    }
    i64::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.1, "0.10000000000000001"),
            (1.5, "1.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.760_000_123_456_789e15, "1760000123456789"),
            (1e-5, "1.0000000000000001e-05"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(general(number), text);
        }
    }

    #[test]
    fn cutting_goes_towards_zero() {
        assert_eq!((truncated(-1.9), truncated(1.9)), (-1, 1));
        assert_eq!(
            (truncated(f64::NAN), truncated(1e300)),
            (i64::MIN, i64::MIN)
        );
    }
}
