//! The name of a quorum node in the notes that the other nodes keep.

use locktopus_protocol::HostPort;

use crate::url::{SERVER_PORT, addresses};

/// The address in a node's label, which is its URL as messages show it. Programs may use different
/// options, logins and databases, and may leave out the default port.
pub(super) fn node_address(label: &str) -> String {
    let place = label.split_once('?').map_or(label, |(place, _)| place);
    let place = place.split_once("://").map_or(place, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, rest)| rest);
    // The path of a unix socket.
    if place.starts_with('/') {
        return place.to_owned();
    }
    let address = place.split_once('/').map_or(place, |(address, _)| address);
    let parsed = addresses(address, SERVER_PORT).ok();
    let Some((host, port)) = parsed.and_then(|mut all| all.pop()) else {
        return place.to_owned();
    };
    let host = match host.to_ascii_lowercase().as_str() {
        "localhost" => "127.0.0.1".to_owned(),
        host => host.to_owned(),
    };
    HostPort { host, port }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_differ_in_options_mean_the_same_node() {
        for label in [
            "redis://h:1",
            "redis://***@h:1?client=fred",
            "rediss://h:1?label=a",
            "valkey://H:1/0",
        ] {
            assert_eq!(node_address(label), "h:1");
        }
        for (label, expected) in [
            ("redis://h", "h:6379"),
            ("redis://h/2", "h:6379"),
            ("redis://localhost:7000", "127.0.0.1:7000"),
            ("redis://[::1]", "[::1]:6379"),
            ("redis://[::1]:7000/0", "[::1]:7000"),
            ("redis+unix:///run/a.sock", "/run/a.sock"),
            ("unix://***@/run/b.sock?db=1", "/run/b.sock"),
        ] {
            assert_eq!(node_address(label), expected, "{label}");
        }
    }
}
