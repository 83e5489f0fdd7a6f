//! The answers of servers.

use bytes::Bytes;

/// An answer, free of the differences between RESP2, RESP3 and the clients' types.
///
/// ```
/// use locktopus_protocol::Reply;
///
/// let text = |text: &'static str| Reply::Bytes(text.into());
/// let map = Reply::Array(vec![text("role"), text("master"), text("slots"), Reply::Int(3)]);
/// assert_eq!(map.items().map(<[Reply]>::len), Some(4));
/// assert_eq!(map.field("role").and_then(Reply::text), Some("master"));
/// let role = map.field("role").unwrap();
/// assert_eq!(role.text(), Some("master"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nil of any type.
    Nil,
    /// An integer; booleans become 0 and 1.
    Int(i64),
    /// Bulk, simple or verbatim string, and doubles in their textual form.
    Bytes(Bytes),
    /// Array, set, or a map flattened into key, value, key, value.
    Array(Vec<Self>),
}

impl Reply {
    /// The items of an array.
    ///
    /// ```
    /// use locktopus_protocol::Reply;
    ///
    /// assert_eq!(Reply::Array(vec![Reply::Int(1)]).items(), Some(&[Reply::Int(1)][..]));
    /// assert_eq!(Reply::Nil.items(), None);
    /// ```
    #[must_use]
    pub fn items(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Nil | Self::Int(_) | Self::Bytes(_) => None,
        }
    }

    /// A string, if it is UTF-8.
    ///
    /// ```
    /// use locktopus_protocol::Reply;
    ///
    /// assert_eq!(Reply::Bytes("PONG".into()).text(), Some("PONG"));
    /// assert_eq!(Reply::Int(1).text(), None);
    /// ```
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Nil | Self::Int(_) | Self::Array(_) => None,
        }
    }

    /// The value of a field of a map.
    ///
    /// ```
    /// use locktopus_protocol::Reply;
    ///
    /// let hello = Reply::Array(vec![Reply::Bytes("proto".into()), Reply::Int(3)]);
    /// assert_eq!(hello.field("proto"), Some(&Reply::Int(3)));
    /// assert_eq!(hello.field("role"), None);
    /// ```
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        let mut fields = self.items()?.chunks_exact(2);
        let field = fields.find(|field| field[0].text() == Some(name))?;
        Some(&field[1])
    }
}
