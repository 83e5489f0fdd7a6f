//! Names from callers.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A name from a caller, before it is checked and encoded: text, or any bytes if names are
/// [escaped](crate::NameEncoding::Escaped).
///
/// ```
/// use locktopus_contract::RawName;
/// // `Locktopus::lock` and its siblings take this, and your own functions can too.
/// fn named(name: impl Into<RawName>) -> RawName {
///     name.into()
/// }
/// assert_eq!(named("invoice:42").as_ref(), b"invoice:42");
/// assert_eq!(named(format!("invoice:{}", 42)).as_ref(), named(b"invoice:42".as_slice()).as_ref());
/// ```
#[derive(Clone)]
pub struct RawName(Given);

/// Text can become a checked name without a copy.
#[derive(Clone)]
enum Given {
    Text(Arc<str>),
    Bytes(Vec<u8>),
}

impl RawName {
    /// The text, if the caller passed text.
    pub(super) fn text(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Given::Text(text) => Some(text),
            Given::Bytes(_) => None,
        }
    }
}

impl AsRef<[u8]> for RawName {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Given::Text(text) => text.as_bytes(),
            Given::Bytes(bytes) => bytes,
        }
    }
}

impl PartialEq for RawName {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for RawName {}

impl Hash for RawName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

macro_rules! from {
    ($form:ident: $($given:ty),*) => {
        $(impl From<$given> for RawName {
            fn from(name: $given) -> Self {
                Self(Given::$form(name.into()))
            }
        })*
    };
}

from!(Text: String, &str, Box<str>, Cow<'_, str>);
from!(Bytes: Vec<u8>, &[u8], Cow<'_, [u8]>);

impl From<&String> for RawName {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl<const N: usize> From<&[u8; N]> for RawName {
    fn from(name: &[u8; N]) -> Self {
        name.as_slice().into()
    }
}

/// As text, with invalid bytes escaped.
impl fmt::Debug for RawName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.as_ref()) {
            Ok(text) => fmt::Debug::fmt(text, f),
            Err(_) => write!(f, "\"{}\"", self.as_ref().escape_ascii()),
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
