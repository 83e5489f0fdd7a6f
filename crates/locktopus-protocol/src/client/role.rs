//! Whether a server that subscriptions are made on is a primary.
//!
//! A replica accepts subscriptions and forwards what its primary publishes. But scripts on the
//! primary cannot count its subscribers, so they grant them nothing. `HELLO` tells the role to
//! every user, even one without rights.

use crate::client::Reply;

/// The command that asks a server for its role.
pub const ROLE_QUESTION: &str = "HELLO";

/// Whether the server's answer says that it is a replica. False if the answer does not tell, as
/// with some proxies.
#[must_use]
pub fn says_replica(answer: &Reply) -> bool {
    let role = answer.field("role").and_then(Reply::text);
    role.is_some_and(|role| ["replica", "slave"].contains(&role))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn hello(fields: &[&'static str]) -> Reply {
        let fields = fields
            .iter()
            .map(|text| Reply::Bytes(Bytes::from_static(text.as_bytes())));
        Reply::Array(fields.collect())
    }

    #[test]
    fn the_role_is_found() {
        assert!(says_replica(&hello(&[
            "server", "redis", "role", "replica", "mode", "cluster"
        ])));
        assert!(says_replica(&hello(&["role", "slave"])));
        assert!(!says_replica(&hello(&[
            "server", "redis", "role", "master"
        ])));
    }

    #[test]
    fn who_does_not_say_is_trusted() {
        assert!(
            !says_replica(&hello(&["server", "role", "proto", "replica"])),
            "a value is no field"
        );
        assert!(!says_replica(&hello(&["role"])));
        assert!(!says_replica(&Reply::Nil));
    }
}
