//! Cuts the traffic of single servers inside a pod.
//!
//! All servers of a pod share one address, so packet rules recognise a server by the user id of its
//! sockets. At the first use, a small container with the right to change packet rules starts in the
//! pod's namespace; the host is not changed.

use tokio::sync::OnceCell;

use super::Container;
use super::engine::Engine;
use super::requests::{self, Tags};
use crate::topology::error::TopologyError;
use crate::topology::plan::BUS;
use crate::topology::provider::{Isolation, ProviderKind};

/// The helper's image, made by `scripts/build-images`.
pub(crate) const IMAGE: &str = "locktopus/nft:1";
const IMAGE_PARTS: (&str, &str) = ("locktopus/nft", "1");

/// How packet rules recognise a server.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) uid: u32,
    pub(crate) ports: Vec<u16>,
}

/// The packet rules of one pod.
#[derive(Debug)]
pub(crate) struct Partition {
    engine: Engine,
    pod: String,
    tags: Tags,
    helper: OnceCell<Container>,
}

impl Partition {
    pub(crate) fn new(engine: Engine, pod: &Container, tags: Tags) -> Self {
        Self {
            engine,
            pod: pod.id().to_owned(),
            tags,
            helper: OnceCell::new(),
        }
    }

    pub(crate) async fn isolate(
        &self,
        target: &Target,
        from: Isolation,
    ) -> Result<(), TopologyError> {
        if !self.engine.has_image(IMAGE).await? {
            return Err(unsupported(
                from,
                format!("the image {IMAGE} (scripts/build-images)"),
            ));
        }
        self.apply(rules(target, from))
            .await
            .map_err(|error| unsupported(from, format!("packet rules ({error})")))
    }

    pub(crate) async fn heal(&self, target: &Target) -> Result<(), TopologyError> {
        if self.helper.get().is_none() {
            return Ok(());
        }
        self.apply(clear(target)).await
    }

    /// The helper, if it was ever needed.
    pub(crate) fn into_helper(self) -> Option<Container> {
        self.helper.into_inner()
    }

    async fn apply(&self, rules: String) -> Result<(), TopologyError> {
        let helper = self.helper.get_or_try_init(|| {
            let request = requests::helper(IMAGE_PARTS, &self.pod, &self.tags);
            self.engine.start("start the packet rule helper", request)
        });
        let helper = helper.await?;
        self.engine
            .run_inside(helper.id(), vec!["nft".to_owned(), rules])
            .await
    }
}

fn unsupported(from: Isolation, needs: String) -> TopologyError {
    TopologyError::Unsupported {
        verb: format!("isolate from {from}"),
        provider: ProviderKind::Pod,
        needs,
    }
}

fn table(target: &Target) -> String {
    format!("inet locktopus_{}", target.uid)
}

/// Removes the target's rules, if there are any.
fn clear(target: &Target) -> String {
    let table = table(target);
    format!("add table {table}; delete table {table}")
}

fn rules(target: &Target, from: Isolation) -> String {
    let (table, uid) = (table(target), target.uid);
    let clients: Vec<_> = target.ports.iter().map(u16::to_string).collect();
    let clients = clients.join(", ");
    let bus: Vec<_> = target
        .ports
        .iter()
        .map(|port| (port + BUS).to_string())
        .collect();
    let bus = bus.join(", ");

    let mut rules = format!("{}; add table {table}", clear(target));
    if matches!(from, Isolation::Peers | Isolation::All) {
        // Clients come in through the other interface, so all traffic on loopback is between
        // servers. The target's own packets there are dropped too, so that writes it acknowledges
        // to clients from now on cannot reach a replica over an open connection.
        rules += &format!(
            "; add chain {table} out {{ type filter hook output priority 0 ; }}\
             ; add rule {table} out oifname lo meta skuid {uid} drop\
             ; add rule {table} out oifname lo meta skuid != {uid} tcp dport {{ {clients}, {bus} }} drop"
        );
    }
    if matches!(from, Isolation::Clients | Isolation::All) {
        rules += &format!(
            "; add chain {table} in {{ type filter hook input priority 0 ; }}\
             ; add rule {table} in iifname != lo tcp dport {{ {clients} }} drop"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_only_the_target() {
        let target = Target {
            uid: 2_003,
            ports: vec![12_003],
        };
        let all = rules(&target, Isolation::All);
        assert!(
            all.starts_with("add table inet locktopus_2003; delete table inet locktopus_2003;")
        );
        assert!(all.contains("meta skuid 2003 drop"));
        assert!(all.contains("dport { 12003, 22003 } drop"));
        assert!(all.contains("iifname != lo tcp dport { 12003 } drop"));
        assert!(!rules(&target, Isolation::Clients).contains("skuid"));
        assert!(!rules(&target, Isolation::Peers).contains("iifname"));
    }
}
