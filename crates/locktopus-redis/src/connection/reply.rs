//! Converts redis-rs values to [`Reply`], hiding the differences between RESP2 and RESP3.

use bytes::Bytes;
use locktopus_protocol::{ClientError, Reply};
use redis::{ToRedisArgs, Value};

use crate::connection::error::rejected;

/// Converts a value. An error reply anywhere inside rejects the whole answer.
pub(crate) fn reply_of(value: Value) -> Result<Reply, ClientError> {
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Int(number),
        Value::Boolean(yes) => Reply::Int(i64::from(yes)),
        Value::BulkString(bytes) => Reply::Bytes(bytes.into()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Bytes(text.into()),
        Value::Okay => Reply::Bytes(Bytes::from_static(b"OK")),
        Value::Double(number) => Reply::Bytes(double(number).into()),
        // Its type depends on a redis feature that other crates may enable. As a command argument
        // it is decimal text either way.
        Value::BigNumber(number) => {
            Reply::Bytes(number.to_redis_args().pop().unwrap_or_default().into())
        }
        Value::Array(items) | Value::Set(items) | Value::Push { data: items, .. } => {
            Reply::Array(items.into_iter().map(reply_of).collect::<Result<_, _>>()?)
        }
        Value::Map(pairs) => Reply::Array(
            pairs
                .into_iter()
                .flat_map(|(key, value)| [reply_of(key), reply_of(value)])
                .collect::<Result<_, _>>()?,
        ),
        Value::Attribute { data, .. } => reply_of(*data)?,
        Value::ServerError(error) => return Err(rejected(&error)),
        _ => {
            return Err(ClientError::MaybeExecuted(
                "the server answered with a type that this version does not know".to_owned(),
            ));
        }
    })
}

/// Formats a double as RESP2 servers do.
fn double(number: f64) -> String {
    if number.is_nan() {
        "nan".to_owned()
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(wire: &[u8]) -> Result<Reply, ClientError> {
        reply_of(redis::parse_redis_value(wire).unwrap())
    }

    fn text(text: &'static str) -> Reply {
        Reply::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn scalars() {
        assert_eq!(parsed(b"_\r\n"), Ok(Reply::Nil));
        assert_eq!(parsed(b"$-1\r\n"), Ok(Reply::Nil));
        assert_eq!(parsed(b"*-1\r\n"), Ok(Reply::Nil));
        assert_eq!(parsed(b":-7\r\n"), Ok(Reply::Int(-7)));
        assert_eq!(parsed(b"#t\r\n"), Ok(Reply::Int(1)));
        assert_eq!(parsed(b"#f\r\n"), Ok(Reply::Int(0)));
        assert_eq!(parsed(b"+OK\r\n"), Ok(text("OK")));
        assert_eq!(parsed(b"+QUEUED\r\n"), Ok(text("QUEUED")));
        assert_eq!(parsed(b",1.5\r\n"), Ok(text("1.5")));
        assert_eq!(parsed(b",inf\r\n"), Ok(text("inf")));
        assert_eq!(parsed(b"=7\r\ntxt:abc\r\n"), Ok(text("abc")));
        assert_eq!(
            parsed(b"(340282366920938463463374607431768211456\r\n"),
            Ok(text("340282366920938463463374607431768211456"))
        );
        assert_eq!(
            reply_of(Value::BulkString(vec![0, 255])),
            Ok(Reply::Bytes(Bytes::from_static(&[0, 255])))
        );
    }

    #[test]
    fn containers_are_flattened() {
        assert_eq!(
            parsed(b"%2\r\n+a\r\n:1\r\n+b\r\n_\r\n"),
            Ok(Reply::Array(vec![
                text("a"),
                Reply::Int(1),
                text("b"),
                Reply::Nil
            ]))
        );
        assert_eq!(
            parsed(b"~1\r\n*1\r\n#t\r\n"),
            Ok(Reply::Array(vec![Reply::Array(vec![Reply::Int(1)])]))
        );
    }

    #[test]
    fn errors_keep_their_first_word_wherever_they_stand() {
        for (wire, line) in [
            (
                &b"-NOSCRIPT No matching script.\r\n"[..],
                "NOSCRIPT No matching script.",
            ),
            (
                b"-MOVED 3999 127.0.0.1:6381\r\n",
                "MOVED 3999 127.0.0.1:6381",
            ),
            (b"-ERR unknown command\r\n", "ERR unknown command"),
            (b"-MYERR boom\r\n", "MYERR boom"),
            (b"-LONELY\r\n", "LONELY"),
            (b"*2\r\n:1\r\n-READONLY You can't\r\n", "READONLY You can't"),
        ] {
            assert_eq!(parsed(wire), Err(ClientError::rejected(line)));
        }
    }
}
