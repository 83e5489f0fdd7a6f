//! Formats shared by the commands.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use locktopus::OwnerId;

/// Identifies an owner without revealing the id, which is enough to release the lock.
pub(crate) fn owner_tag(owner: &OwnerId) -> String {
    format!("{owner:?}")
}

/// A time for people: two units at most, tenths of a second at best.
pub(crate) fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{:.1}s", time.as_secs_f64()),
        10..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Text that others chose, such as a lock's name, with characters that control the terminal
/// escaped.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    // Including characters that reverse the text's direction and disguise a name.
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// A path from the command line. Hidden if it may be a connection string with a password.
pub(crate) fn typed_path(path: &Path) -> String {
    let text = path.display().to_string();
    let foreign = |c: char| matches!(c, ',' | ';' | '=' | '@' | '#' | '?' | '&');
    if text.contains(foreign) || text.contains("://") {
        return "***".to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_reaches_the_terminal() {
        assert_eq!(visible("größer:日本"), "größer:日本");
        assert_eq!(visible("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(visible("a\u{202e}b\u{9b}"), "a\\u{202e}b\\u{9b}");
    }

    #[test]
    fn ages_have_two_units() {
        let said = |millis| age(Duration::from_millis(millis));
        assert_eq!(said(1_540), "1.5s");
        assert_eq!(said(59_999), "59s");
        assert_eq!(said(61_000), "1m01s");
        assert_eq!(said(3_660_000), "1h01m");
        assert_eq!(said(90_000_000), "1d01h");
    }
}
