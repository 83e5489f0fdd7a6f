//! Converts fred's RESP3 frames to [`Reply`], and server errors to [`ClientError::Rejected`].

use bytes::Bytes;
use fred::types::Resp3Frame;
use locktopus_protocol::{ClientError, Reply};

/// Converts a raw answer to a reply or a refusal.
///
/// Raw frames separate server errors from fred's own errors; fred's parsed values do not.
pub(crate) fn from_frame(frame: Resp3Frame) -> Result<Reply, ClientError> {
    match frame {
        Resp3Frame::SimpleError { data, .. } => Err(ClientError::rejected(&data)),
        Resp3Frame::BlobError { data, .. } => {
            Err(ClientError::rejected(&String::from_utf8_lossy(&data)))
        }
        answer => Ok(nested(answer)),
    }
}

fn nested(frame: Resp3Frame) -> Reply {
    match frame {
        Resp3Frame::Null => Reply::Nil,
        Resp3Frame::Number { data, .. } => Reply::Int(data),
        Resp3Frame::Boolean { data, .. } => Reply::Int(i64::from(data)),
        Resp3Frame::Double { data, .. } => Reply::Bytes(Bytes::from(data.to_string())),
        Resp3Frame::BlobString { data, .. }
        | Resp3Frame::SimpleString { data, .. }
        | Resp3Frame::BigNumber { data, .. }
        | Resp3Frame::VerbatimString { data, .. }
        | Resp3Frame::ChunkedString(data)
        // An error inside an array is data, not a refusal: the command as a whole has run.
        | Resp3Frame::BlobError { data, .. } => Reply::Bytes(data),
        Resp3Frame::SimpleError { data, .. } => Reply::Bytes(data.into_inner()),
        Resp3Frame::Array { data, .. } | Resp3Frame::Push { data, .. } => {
            Reply::Array(data.into_iter().map(nested).collect())
        }
        Resp3Frame::Set { data, .. } => Reply::Array(data.into_iter().map(nested).collect()),
        Resp3Frame::Map { data, .. } => {
            Reply::Array(data.into_iter().flat_map(|(k, v)| [nested(k), nested(v)]).collect())
        }
        // Only clients send this.
        Resp3Frame::Hello { .. } => Reply::Nil,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(data: i64) -> Resp3Frame {
        Resp3Frame::Number {
            data,
            attributes: None,
        }
    }

    #[test]
    fn errors_keep_their_first_word() {
        let frame = Resp3Frame::SimpleError {
            data: "NOSCRIPT No matching".into(),
            attributes: None,
        };
        let expected = ClientError::Rejected {
            code: "NOSCRIPT".to_owned(),
            message: "No matching".to_owned(),
        };
        assert_eq!(from_frame(frame), Err(expected));
    }

    #[test]
    fn resp3_types_are_flattened() {
        let flag = Resp3Frame::Boolean {
            data: true,
            attributes: None,
        };
        let half = Resp3Frame::Double {
            data: 0.5,
            attributes: None,
        };
        let map = Resp3Frame::Map {
            data: [(number(1), half)].into_iter().collect(),
            attributes: None,
        };
        let frame = Resp3Frame::Array {
            data: vec![Resp3Frame::Null, flag, map],
            attributes: None,
        };
        let expected = Reply::Array(vec![
            Reply::Nil,
            Reply::Int(1),
            Reply::Array(vec![
                Reply::Int(1),
                Reply::Bytes(Bytes::from_static(b"0.5")),
            ]),
        ]);
        assert_eq!(from_frame(frame), Ok(expected));
    }
}
