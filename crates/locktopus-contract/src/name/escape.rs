//! Any bytes as readable ASCII, and back. Bytes outside the list below become `%` and two hex
//! digits.
//!
//! Escaped text has no `{` or `}`, so it can be a hash tag or part of one. It has no `*`, `?`, `[`
//! or `\`, so as a pattern it matches only itself. It has no spaces, quotes or control characters,
//! so it survives shells and log files. Each byte has exactly one form, so different bytes never
//! give the same name.

/// Kept unchanged, besides letters and digits: characters that are common in names.
const PLAIN: &[u8] = b"-._~:/@+,=";
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || PLAIN.contains(&byte)
}

/// Appends the escaped form of `bytes`.
pub(super) fn escape_into(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The length of the escaped form in bytes.
pub(super) fn escaped_len(bytes: &[u8]) -> usize {
    let plain = bytes.iter().filter(|&&byte| is_plain(byte)).count();
    plain + 3 * (bytes.len() - plain)
}

/// Undoes [`escape_into`]. Refuses any other text, and names the broken rule.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let at = text.len() - rest.len();
        if byte != b'%' {
            if !is_plain(byte) {
                return Err(format!("the byte at {at} would have been escaped"));
            }
            out.push(byte);
            rest = behind;
            continue;
        }
        let value = |digit: u8| DIGITS.iter().position(|&known| known == digit);
        let escaped = match behind {
            [high, low, ..] => value(*high).zip(value(*low)),
            _ => None,
        };
        let (high, low) = escaped
            .ok_or_else(|| format!("the % at {at} is not followed by two digits of 0-9 and A-F"))?;
        let byte = (high * 16 + low) as u8;
        if is_plain(byte) {
            return Err(format!(
                "what the % at {at} stands for would not have been escaped"
            ));
        }
        out.push(byte);
        rest = &behind[2..];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_form() {
        let mut forms = std::collections::HashSet::new();
        for byte in 0..=u8::MAX {
            let mut text = String::new();
            escape_into(&mut text, &[byte]);
            assert_eq!(text.len(), escaped_len(&[byte]), "{text}");
            assert_eq!(unescape(&text).unwrap(), [byte]);
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_graphic() && !b"{}*?[]\\'\"".contains(&b)),
                "{text}"
            );
            assert!(forms.insert(text));
        }
    }

    #[test]
    fn only_what_was_written_can_be_read() {
        for bad in [
            "%",
            "%4",
            "a%4",
            "%41",
            "%7b",
            "%zz",
            "a b",
            "{",
            "é",
            "a%2\u{661}",
            "%%20",
            "%+7",
        ] {
            assert!(unescape(bad).is_err(), "{bad:?}");
        }
    }
}
