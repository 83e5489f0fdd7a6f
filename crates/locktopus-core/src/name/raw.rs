//! Names as callers give them.

use std::borrow::Cow;
use std::fmt;

/// A name as the caller gave it, before it is checked and encoded: text, or any bytes where names are
/// [escaped](crate::NameEncoding::Escaped).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawName(Vec<u8>);

impl AsRef<[u8]> for RawName {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

macro_rules! from {
    ($($given:ty),*) => {
        $(impl From<$given> for RawName {
            fn from(name: $given) -> Self {
                Self(name.into())
            }
        })*
    };
}

from!(String, &str, Vec<u8>, &[u8], Cow<'_, [u8]>);

impl From<&String> for RawName {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl From<Box<str>> for RawName {
    fn from(name: Box<str>) -> Self {
        String::from(name).into()
    }
}

impl From<Cow<'_, str>> for RawName {
    fn from(name: Cow<'_, str>) -> Self {
        name.into_owned().into()
    }
}

impl<const N: usize> From<&[u8; N]> for RawName {
    fn from(name: &[u8; N]) -> Self {
        name.as_slice().into()
    }
}

/// As text, with what is none escaped.
impl fmt::Debug for RawName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(&self.0) {
            Ok(text) => fmt::Debug::fmt(text, f),
            Err(_) => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_one_name() {
        let names: [RawName; 8] = [
            "a".into(),
            (&"a".to_owned()).into(),
            "a".to_owned().into(),
            Box::<str>::from("a").into(),
            Cow::Borrowed("a").into(),
            b"a".into(),
            b"a".to_vec().into(),
            b"a".as_slice().into(),
        ];
        assert!(names.iter().all(|name| name.as_ref() == b"a"));
        assert_eq!(format!("{:?}", RawName::from("é\n")), r#""é\n""#);
        assert_eq!(format!("{:?}", RawName::from(b"\"\xff")), r#""\"\xff""#);
    }
}
