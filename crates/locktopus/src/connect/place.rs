//! Under which name nodes of a quorum keep notes about each other.

/// The address in a node's label, which is its URL as messages show it. Programs may differ in
/// options, logins and databases, and write the usual port or not.
pub(super) fn place(label: &str) -> String {
    let place = label.split_once('?').map_or(label, |(place, _)| place);
    let place = place.split_once("://").map_or(place, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, rest)| rest);
    let place = place.split_once('/').map_or(place, |(place, _)| place);
    let place = place.to_ascii_lowercase();
    // Behind the brackets of an IPv6 address.
    let behind_host = place.rfind(']').unwrap_or(0);
    let (host, port) = match place[behind_host..].rfind(':') {
        Some(at) => place.split_at(behind_host + at),
        None => (place.as_str(), USUAL_PORT),
    };
    let host = if host == "localhost" {
        "127.0.0.1"
    } else {
        host
    };
    format!("{host}{port}")
}

/// As it stands behind a host.
const USUAL_PORT: &str = ":6379";

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
            assert_eq!(place(label), "h:1");
        }
        for (label, expected) in [
            ("redis://h", "h:6379"),
            ("redis://h/2", "h:6379"),
            ("redis://localhost:7000", "127.0.0.1:7000"),
            ("redis://[::1]", "[::1]:6379"),
            ("redis://[::1]:7000/0", "[::1]:7000"),
        ] {
            assert_eq!(place(label), expected, "{label}");
        }
    }
}
