//! Encodes names from callers as lock names.

use std::sync::Arc;

use super::{LockName, MAX_NAME_BYTES, NameError, RawName, escape, start_of};

/// How a program's names are stored.
///
/// ```
/// use locktopus_contract::NameEncoding;
/// let path = b"reports/{2024}/\xe9t\xe9";
/// let name = NameEncoding::Escaped.encode("shop:", path)?;
/// assert_eq!(name.as_str(), "shop:reports/%7B2024%7D/%E9t%E9");
/// assert_eq!(NameEncoding::Escaped.decode("shop:", &name)?, path);
/// assert!(NameEncoding::Plain.encode("shop:", path).is_err());
/// # Ok::<(), locktopus_contract::NameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NameEncoding {
    /// The text itself. The default, and what other libraries expect if they share the locks. A
    /// cluster refuses names with braces that would put a lock's keys into different slots.
    #[default]
    Plain,
    /// Any bytes. All except letters, digits and `-._~:/@+,=` become `%` and two hex digits.
    /// Different names stay different, braces never cause a refusal, and no name looks like a
    /// pattern. All programs that share the locks must use it.
    Escaped,
}

impl NameEncoding {
    /// Encodes a name and puts `namespace` before it, unchanged.
    ///
    /// # Errors
    ///
    /// [`NameError::Empty`]; [`NameError::TooLong`] and [`NameError::NotText`] for plain names;
    /// [`NameError::EncodedTooLong`] for escaped names.
    pub fn encode(self, namespace: &str, name: impl AsRef<[u8]>) -> Result<LockName, NameError> {
        let name = name.as_ref();
        match self {
            Self::Plain => {
                let text = std::str::from_utf8(name).map_err(|error| NameError::NotText {
                    start: start_of(name),
                    at: error.valid_up_to(),
                })?;
                LockName::in_namespace(namespace, text)
            }
            Self::Escaped => escaped(namespace, name),
        }
    }

    /// [`encode`](Self::encode) for a name from a caller. Avoids a copy of text that is stored
    /// unchanged.
    #[doc(hidden)]
    pub fn encode_given(self, namespace: &str, name: &RawName) -> Result<LockName, NameError> {
        match (self, namespace, name.text()) {
            (Self::Plain, "", Some(text)) => LockName::of_text(Arc::clone(text)),
            _ => self.encode(namespace, name),
        }
    }

    /// The bytes from which [`encode`](Self::encode) made this name.
    ///
    /// # Errors
    ///
    /// [`NameError::NotEncoded`] if it did not make this name.
    pub fn decode(self, namespace: &str, name: &LockName) -> Result<Vec<u8>, NameError> {
        let refuse = |rule: String| NameError::NotEncoded {
            name: name.as_str().to_owned(),
            rule,
        };
        let text = name
            .as_str()
            .strip_prefix(namespace)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| refuse(format!("it has nothing behind the namespace {namespace:?}")))?;
        match self {
            Self::Plain => Ok(text.as_bytes().to_vec()),
            Self::Escaped => escape::unescape(text).map_err(refuse),
        }
    }
}

fn escaped(namespace: &str, name: &[u8]) -> Result<LockName, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    let bytes = namespace.len() + escape::escaped_len(name);
    if bytes > MAX_NAME_BYTES {
        return Err(NameError::EncodedTooLong {
            bytes,
            raw_bytes: name.len(),
            start: start_of(name),
        });
    }
    let mut text = String::with_capacity(bytes);
    text.push_str(namespace);
    escape::escape_into(&mut text, name);
    Ok(LockName(text.into()))
}
