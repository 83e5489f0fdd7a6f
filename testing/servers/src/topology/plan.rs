//! Turns a specification into the exact list of servers, their files and their arguments.
//!
//! Pure, and shared by the providers, so that a scenario meets the same servers everywhere. Options
//! go into a file instead of arguments because Sentinel rewrites the file when it changes roles: a
//! restarted server must come back in its latest role, not in its first one.

use crate::topology::kind::TopologyKind;
use crate::topology::spec::Spec;
use crate::topology::tls::Certificates;

/// Sentinel's name for the primary.
pub(crate) const MASTER_NAME: &str = "mymaster";

/// The configuration file inside a node's directory.
pub(crate) const CONF: &str = "server.conf";

/// Offset of the cluster bus port.
pub(crate) const BUS: u16 = 10_000;

/// One server to start.
#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    pub(crate) sentinel: bool,
    /// Port that the server listens on for clients.
    pub(crate) port: u16,
    /// Port for clients and other servers: the same, or that of a proxy in front of it.
    pub(crate) public_port: u16,
    /// Plain-text port for the harness; the same as `port` except with TLS.
    pub(crate) admin_port: u16,
    /// Arguments after the program name.
    pub(crate) args: Vec<String>,
    /// Files to put into the node's directory before the first start.
    pub(crate) files: Vec<(&'static str, String)>,
}

/// The place of the servers.
pub(crate) struct Place<'a> {
    /// Address to listen on; `None` for all (only inside a namespace of their own).
    pub(crate) bind: Option<&'a str>,
    /// Directory of a node, by name, as the server sees it.
    pub(crate) dir: &'a (dyn Fn(&str) -> String + Send + Sync),
    /// First port of the block.
    pub(crate) base: u16,
    /// Certificates, for servers with TLS.
    pub(crate) certificates: Option<&'a Certificates>,
}

/// The number of servers, including sentinels.
const fn servers(kind: TopologyKind) -> u16 {
    match kind {
        TopologyKind::Sentinel { sentinels, .. } => kind.data_nodes() + sentinels as u16,
        TopologyKind::Standalone
        | TopologyKind::Tls
        | TopologyKind::Cluster { .. }
        | TopologyKind::Quorum { .. } => kind.data_nodes(),
    }
}

/// How many contiguous ports the servers of a specification take: one for each server and, with
/// TLS, after them one plain-text port each for the harness.
pub(crate) const fn ports_needed(spec: &Spec) -> u16 {
    let servers = servers(spec.kind());
    if spec.tls() { servers * 2 } else { servers }
}

/// How many contiguous ports a specification takes: those of the servers, then one for each proxy.
pub(crate) const fn ports_of(spec: &Spec) -> u16 {
    let servers = ports_needed(spec);
    match spec.round_trip() {
        Some(_) => servers * 2,
        None => servers,
    }
}

/// The public port of the server that listens on `port`.
const fn public(spec: &Spec, port: u16) -> u16 {
    port + ports_of(spec) - ports_needed(spec)
}

/// The plain-text port of the server that listens on `port`.
const fn admin(spec: &Spec, port: u16) -> u16 {
    if spec.tls() {
        port + servers(spec.kind())
    } else {
        port
    }
}

/// All servers, data nodes first. Replicas of cluster primary `i` are `i + primaries`,
/// `i + 2 * primaries` and so on, so that scenarios can name them.
pub(crate) fn nodes(spec: &Spec, place: &Place<'_>) -> Vec<NodePlan> {
    let kind = spec.kind();
    let mut all: Vec<_> = (0..kind.data_nodes())
        .map(|index| data_node(spec, place, index))
        .collect();
    if let TopologyKind::Sentinel { sentinels, .. } = kind {
        let first = kind.data_nodes();
        all.extend((0..u16::from(sentinels)).map(|i| sentinel(spec, place, first, i)));
    }
    all
}

fn data_node(spec: &Spec, place: &Place<'_>, index: u16) -> NodePlan {
    let name = format!("node-{index}");
    let dir = (place.dir)(&name);
    let port = place.base + index;
    let admin_port = admin(spec, port);
    let public_port = public(spec, port);
    let knobs = spec.knobs();

    let mut conf = common(place, &dir, admin_port);
    conf.line("save", &[""]);
    conf.line("appendonly", &[yes(knobs.appendonly)]);
    conf.line("enable-debug-command", &["yes"]);
    // By default, a start would mostly wait five seconds for more replicas to arrive.
    conf.line("repl-diskless-sync-delay", &["0"]);
    conf.line("repl-ping-replica-period", &["1"]);
    if let TopologyKind::Cluster { .. } = spec.kind() {
        conf.line("cluster-enabled", &["yes"]);
        conf.line("cluster-config-file", &["nodes.conf"]);
        conf.line("cluster-announce-ip", &["127.0.0.1"]);
        if spec.tls() {
            conf.line("tls-cluster", &["yes"]);
            conf.line("cluster-announce-tls-port", &[&public_port.to_string()]);
            conf.line("cluster-announce-port", &[&admin_port.to_string()]);
        } else {
            conf.line("cluster-announce-port", &[&public_port.to_string()]);
        }
        conf.line(
            "cluster-node-timeout",
            &[&knobs.node_timeout_ms.to_string()],
        );
        conf.line("cluster-require-full-coverage", &[yes(knobs.full_coverage)]);
        // A replica that changes its shard on its own would break scenarios that name nodes.
        conf.line("cluster-allow-replica-migration", &["no"]);
    }
    if let TopologyKind::Sentinel { .. } = spec.kind() {
        conf.line("replica-announce-ip", &["127.0.0.1"]);
        conf.line("replica-announce-port", &[&public_port.to_string()]);
        if index > 0 {
            let primary = public(spec, place.base).to_string();
            conf.line("replicaof", &["127.0.0.1", &primary]);
        }
    }
    let mut files = conf.encrypted(place, &dir, port);
    for user in &knobs.users {
        conf.raw("user", user);
    }
    files.push((CONF, conf.0));

    let mut args = vec![format!("{dir}/{CONF}")];
    args.extend(knobs.extra_args.iter().cloned());
    NodePlan {
        name,
        sentinel: false,
        port,
        public_port,
        admin_port,
        args,
        files,
    }
}

fn sentinel(spec: &Spec, place: &Place<'_>, first: u16, index: u16) -> NodePlan {
    let TopologyKind::Sentinel { sentinels, .. } = spec.kind() else {
        unreachable!("only sentinel topologies plan sentinels");
    };
    let name = format!("sentinel-{index}");
    let dir = (place.dir)(&name);
    let port = place.base + first + index;
    let public_port = public(spec, port);
    let knobs = spec.knobs();
    let quorum = (sentinels / 2 + 1).to_string();

    let admin_port = admin(spec, port);
    let mut conf = common(place, &dir, admin_port);
    let mut files = conf.encrypted(place, &dir, port);
    conf.line(
        "sentinel",
        &[
            "monitor",
            MASTER_NAME,
            "127.0.0.1",
            &public(spec, place.base).to_string(),
            &quorum,
        ],
    );
    for (option, value) in [
        ("down-after-milliseconds", knobs.down_after_ms),
        ("failover-timeout", knobs.failover_timeout_ms),
        ("parallel-syncs", 1),
    ] {
        conf.line("sentinel", &[option, MASTER_NAME, &value.to_string()]);
    }
    conf.line("sentinel", &["announce-ip", "127.0.0.1"]);
    conf.line("sentinel", &["announce-port", &public_port.to_string()]);
    for user in &knobs.sentinel_users {
        conf.raw("user", user);
    }
    files.push((CONF, conf.0));
    NodePlan {
        name,
        sentinel: true,
        port,
        public_port,
        admin_port,
        args: vec![format!("{dir}/{CONF}"), "--sentinel".to_owned()],
        files,
    }
}

fn common(place: &Place<'_>, dir: &str, port: u16) -> Conf {
    let mut conf = Conf(String::new());
    conf.line("port", &[&port.to_string()]);
    if let Some(address) = place.bind {
        conf.line("bind", &[address]);
    }
    // Published container ports are not loopback to the server, and in some builds this is on by
    // default.
    conf.line("protected-mode", &["no"]);
    conf.line("dir", &[dir]);
    // Keeps the run directory visible in the process list, where the sweep looks for it.
    conf.line("set-proc-title", &["no"]);
    conf
}

const fn yes(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

/// A configuration file under construction.
struct Conf(String);

impl Conf {
    fn line(&mut self, option: &str, values: &[&str]) {
        self.0.push_str(option);
        for value in values {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            self.0.push_str(&format!(" \"{escaped}\""));
        }
        self.0.push('\n');
    }

    /// Makes the server speak TLS on `port`, to clients and to other servers, if it has
    /// certificates. Returns their files.
    fn encrypted(
        &mut self,
        place: &Place<'_>,
        dir: &str,
        port: u16,
    ) -> Vec<(&'static str, String)> {
        let Some(certificates) = place.certificates else {
            return Vec::new();
        };
        self.line("tls-port", &[&port.to_string()]);
        self.line("tls-auth-clients", &["no"]);
        self.line("tls-replication", &["yes"]);
        let mut files = Vec::new();
        for (option, file, content) in certificates.server_files() {
            self.line(option, &[&format!("{dir}/{file}")]);
            files.push((file, content.to_owned()));
        }
        files
    }

    fn raw(&mut self, option: &str, rest: &str) {
        self.0.push_str(&format!("{option} {rest}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kind: TopologyKind) -> Vec<NodePlan> {
        let place = Place {
            bind: Some("127.0.0.1"),
            dir: &|name| format!("/run dir/{name}"),
            base: 12_000,
            certificates: None,
        };
        nodes(&Spec::new(kind), &place)
    }

    #[test]
    fn ports_are_a_contiguous_block() {
        for kind in [
            TopologyKind::Standalone,
            TopologyKind::SENTINEL,
            TopologyKind::CLUSTER,
            TopologyKind::QUORUM,
        ] {
            let ports: Vec<_> = plan(kind).iter().map(|node| node.port).collect();
            let expected: Vec<_> = (12_000..12_000 + ports_needed(&Spec::new(kind))).collect();
            assert_eq!(ports, expected, "{kind}");
        }
    }

    #[test]
    fn servers_behind_proxies_are_announced_where_the_proxies_are() {
        let place = Place {
            bind: Some("127.0.0.1"),
            dir: &|name| format!("/run/{name}"),
            base: 12_000,
            certificates: None,
        };
        for (kind, announced) in [
            (TopologyKind::SENTINEL, "replica-announce-port"),
            (TopologyKind::CLUSTER, "cluster-announce-port"),
        ] {
            let servers = ports_needed(&Spec::new(kind));
            let far = Spec::new(kind).with_round_trip(std::time::Duration::ZERO);
            assert_eq!(ports_of(&far), servers * 2);
            for node in nodes(&far, &place) {
                assert_eq!(node.public_port, node.port + servers, "{}", node.name);
                let conf = &node.files[0].1;
                let option = if node.sentinel {
                    r#"sentinel "announce-port""#
                } else {
                    announced
                };
                let line = format!("{option} \"{}\"", node.public_port);
                assert!(conf.contains(&line), "{line} in {conf}");
                assert!(!conf.contains(r#""127.0.0.1" "12000""#), "{conf}");
            }
        }
    }

    #[test]
    fn no_two_servers_share_a_port_with_tls_far_away() {
        let certificates = Certificates::make().unwrap();
        let place = Place {
            bind: Some("127.0.0.1"),
            dir: &|name| format!("/run/{name}"),
            base: 12_000,
            certificates: Some(&certificates),
        };
        for kind in TopologyKind::ALL {
            let spec = Spec::new(kind)
                .with_tls()
                .with_round_trip(std::time::Duration::ZERO);
            let all = nodes(&spec, &place);
            let ports = all
                .iter()
                .flat_map(|node| [node.port, node.admin_port, node.public_port]);
            let different: std::collections::BTreeSet<_> = ports.collect();
            assert_eq!(different.len(), all.len() * 3, "{kind}");
            let last = different.last().copied().unwrap_or_default();
            assert!(last < 12_000 + ports_of(&spec), "{kind}: {last}");
        }
    }

    #[test]
    fn sentinels_watch_the_first_node_with_a_majority() {
        let all = plan(TopologyKind::SENTINEL);
        let conf = &all[3].files[0].1;
        assert!(all[3].sentinel);
        assert!(conf.contains(r#"sentinel "monitor" "mymaster" "127.0.0.1" "12000" "2""#));
        assert!(conf.contains(r#"dir "/run dir/sentinel-0""#));
        assert!(
            all[1].files[0]
                .1
                .contains(r#"replicaof "127.0.0.1" "12000""#)
        );
        assert!(!all[0].files[0].1.contains("replicaof"));
    }
}
