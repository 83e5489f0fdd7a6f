//! Converts a caller's byte slices to a fred command with few allocations.

use bytes::{Bytes, BytesMut};
use fred::types::{ClusterHash, CustomCommand, Value};
use locktopus_protocol::ClientError;

/// Command names that need no allocation.
const KNOWN: [&str; 12] = [
    "EVALSHA", "EVAL", "PING", "GET", "SET", "DEL", "EXISTS", "PTTL", "HGET", "PUBLISH",
    "SPUBLISH", "SCRIPT",
];

/// A command as fred represents it.
pub(crate) struct Request {
    pub(crate) name: CustomCommand,
    pub(crate) args: Vec<Value>,
}

impl Request {
    /// Copies `words` into one buffer and slices it. The first word is the command's name.
    pub(crate) fn new(words: &[&[u8]]) -> Result<Self, ClientError> {
        let Some((name, args)) = words.split_first() else {
            return Err(ClientError::NotSent("the command has no words".to_owned()));
        };
        let mut buffer = BytesMut::with_capacity(args.iter().map(|arg| arg.len()).sum());
        for arg in args {
            buffer.extend_from_slice(arg);
        }
        let mut rest = buffer.freeze();
        let args = args
            .iter()
            .map(|arg| Value::Bytes(rest.split_to(arg.len())))
            .collect();
        Ok(Self {
            name: command_name(name)?,
            args,
        })
    }

    pub(crate) fn each(commands: &[&[&[u8]]]) -> Result<Vec<Self>, ClientError> {
        commands.iter().map(|words| Self::new(words)).collect()
    }

    /// A command with owned arguments.
    pub(crate) fn of(name: &'static str, args: Vec<Bytes>) -> Self {
        Self {
            name: custom_static(name),
            args: args.into_iter().map(Value::Bytes).collect(),
        }
    }
}

fn command_name(name: &[u8]) -> Result<CustomCommand, ClientError> {
    if let Some(known) = KNOWN.iter().find(|known| known.as_bytes() == name) {
        return Ok(custom_static(known));
    }
    // fred splits the name at spaces, which would change the command.
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && !text.contains(char::is_whitespace) => {
            Ok(CustomCommand::new(text, ClusterHash::FirstKey, false))
        }
        _ => Err(ClientError::NotSent(
            "the command's name must be one word of printable text".to_owned(),
        )),
    }
}

fn custom_static(name: &'static str) -> CustomCommand {
    // The hash is ignored: every fred client here has one connection.
    CustomCommand::new_static(name, ClusterHash::FirstKey, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_copied_byte_for_byte() {
        let request = Request::new(&[b"EVALSHA", b"ab", b"", b"\xff\0"]).unwrap();
        let wanted: [&'static [u8]; 3] = [b"ab", b"", b"\xff\0"];
        let wanted: Vec<_> = wanted
            .map(|arg| Value::Bytes(Bytes::from_static(arg)))
            .into();
        assert_eq!(request.args, wanted);
    }

    #[test]
    fn names_that_fred_would_split_are_refused() {
        for words in [&[b"CLIENT ID".as_slice()][..], &[b""], &[b"\xff"], &[]] {
            assert!(
                matches!(Request::new(words), Err(ClientError::NotSent(_))),
                "{words:?}"
            );
        }
    }
}
