//! Durations in the form that people write.

use std::fmt::Write as _;
use std::time::Duration;

/// The units, in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Formats a duration as options take it, such as `5m` or `1d12h`.
#[must_use]
pub fn spelled(time: Duration) -> String {
    let mut left = time.as_nanos();
    let mut text = String::new();
    for (unit, nanos) in UNITS {
        if left >= nanos {
            let _ = write!(text, "{}{unit}", left / nanos);
            left %= nanos;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

/// Rewrites durations in a text that `Debug` wrote: `300s` becomes `5m`.
pub(super) fn respelled(text: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', ';', ':', '.']);
        let time = time_of(bare).map(spelled)?;
        Some(format!("{time}{}", &word[bare.len()..]))
    };
    let words = text
        .split(' ')
        .map(|old| word(old).unwrap_or_else(|| old.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}

/// Parses the `Debug` format of a duration.
fn time_of(text: &str) -> Option<Duration> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.strip_suffix(unit)?.parse::<f64>().ok()?;
    let seconds = match unit {
        "s" => number,
        "ms" => number / 1e3,
        "µs" => number / 1e6,
        "ns" => number / 1e9,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OptionError;

    #[test]
    fn times_are_written_as_people_write_them() {
        for (time, text) in [
            (Duration::from_secs(300), "5m"),
            (Duration::from_secs(86_400), "1d"),
            (Duration::from_secs(40 * 86_400), "40d"),
            (Duration::from_secs(36 * 3_600), "1d12h"),
            (Duration::from_millis(2_999), "2s999ms"),
            (Duration::from_micros(1), "1us"),
            (Duration::from_nanos(1), "1ns"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!(spelled(time), text);
            let error = OptionError::new("lease", time, format!("at most {time:?}, or"));
            assert_eq!(
                error.to_string(),
                format!("lease = {text}: at most {text}, or")
            );
        }
        for text in ["2.5", "s", "as", "1.2.3s", "5x", "the 3rd time", "\"300s\""] {
            assert_eq!(respelled(text), text);
        }
    }
}
