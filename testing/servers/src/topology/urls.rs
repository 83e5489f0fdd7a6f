//! Connection strings for the clients under test.

use crate::topology::kind::TopologyKind;
use crate::topology::node::Node;
use crate::topology::plan::MASTER_NAME;
use crate::topology::tls::TlsFiles;

/// One string per independent system: several for a quorum, one for everything else.
pub(crate) fn urls(
    kind: TopologyKind,
    nodes: &[Node],
    sentinels: &[Node],
    tls: Option<&TlsFiles>,
) -> Vec<String> {
    let (redis, trust) = match tls {
        None => ("redis", String::new()),
        Some(files) => {
            let ca = query_escape(&files.ca.display().to_string());
            ("rediss", format!("?ca={ca}"))
        }
    };
    match kind {
        TopologyKind::Standalone | TopologyKind::Quorum { .. } | TopologyKind::Tls => nodes
            .iter()
            .map(|node| format!("{redis}://{}{trust}", node.addr()))
            .collect(),
        TopologyKind::Sentinel { .. } => {
            vec![format!(
                "{redis}-sentinel://{}/{MASTER_NAME}{trust}",
                joined(sentinels)
            )]
        }
        TopologyKind::Cluster { .. } => vec![format!("{redis}-cluster://{}{trust}", joined(nodes))],
    }
}

fn joined(nodes: &[Node]) -> String {
    let all: Vec<_> = nodes.iter().map(|node| node.addr().to_string()).collect();
    all.join(",")
}

/// Escapes characters that would end or change a query value; slashes may stay.
fn query_escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn query_values_survive_odd_directories() {
        assert_eq!(super::query_escape("/t mp/a&b"), "/t%20mp/a%26b");
    }
}
