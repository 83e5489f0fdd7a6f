//! Starts a whole deployment as child processes.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use super::Launched;
use crate::topology::error::TopologyError;
use crate::topology::host::Host;
use crate::topology::node::Node;
use crate::topology::plain::{Process, RunDir, clock, program};
use crate::topology::plan::{self, NodePlan, Place};
use crate::topology::ports::PortBlock;
use crate::topology::provider::{Caps, ProviderKind};
use crate::topology::spec::Spec;
use crate::topology::tls::Certificates;
use crate::topology::vip::Vip;

/// The capabilities of plain processes on this machine.
pub(crate) fn caps() -> Result<Caps, TopologyError> {
    Ok(caps_with(clock::find()?.is_some()))
}

const fn caps_with(set_clock: bool) -> Caps {
    Caps {
        freeze: true,
        crash: true,
        stop_start: true,
        stall: true,
        peer_partition: false,
        client_cut: false,
        set_clock,
        connect_refused_when_dead: true,
        honest_latency: true,
    }
}

/// Starts every server of `spec` on the given ports.
pub(crate) async fn launch(spec: &Spec, ports: PortBlock) -> Result<Launched, TopologyError> {
    let program = program::find(spec.binary())?;
    let library = clock::find()?;
    let mut caps = caps_with(library.is_some());
    if spec.round_trip().is_some() {
        (caps.connect_refused_when_dead, caps.honest_latency) = (false, false);
    }
    let clock = library.filter(|_| spec.knobs().settable_clock);
    let run = Arc::new(RunDir::create()?);
    let certificates = spec.tls().then(Certificates::make).transpose()?;
    let tls = match &certificates {
        Some(certificates) => Some(certificates.write_client_files(run.path())?),
        None => None,
    };
    let plans = plan::nodes(
        spec,
        &Place {
            bind: Some("127.0.0.1"),
            dir: &|name| run.path().join(name).display().to_string(),
            base: ports.base,
            certificates: certificates.as_ref(),
        },
    );
    let mut launched = Launched {
        provider: ProviderKind::Plain,
        caps,
        label: label(&program),
        nodes: Vec::new(),
        sentinels: Vec::new(),
        proxies: proxies(&plans).await?,
        tls,
        #[cfg(feature = "pod")]
        pod: None,
        run: Arc::clone(&run),
        _ports: ports,
    };
    let (sentinels, data): (Vec<_>, Vec<_>) = plans.iter().partition(|plan| plan.sentinel);
    for plan in data {
        let process = Process::launch(&run, &program, plan, clock.as_deref()).await?;
        launched.nodes.push(Node::new(plan, Host::Plain(process)));
    }
    launched.wait_data_nodes(spec).await?;
    for plan in sentinels {
        let process = Process::launch(&run, &program, plan, None).await?;
        launched
            .sentinels
            .push(Node::new(plan, Host::Plain(process)));
    }
    launched.wait_sentinels().await?;
    Ok(launched)
}

/// A proxy for each server that clients find behind one.
async fn proxies(plans: &[NodePlan]) -> Result<Vec<Vip>, TopologyError> {
    let mut proxies = Vec::new();
    for plan in plans.iter().filter(|plan| plan.public_port != plan.port) {
        let at = |port| (Ipv4Addr::LOCALHOST, port).into();
        proxies.push(Vip::start_at(at(plan.public_port), at(plan.port)).await?);
    }
    Ok(proxies)
}

fn label(program: &Path) -> String {
    program.display().to_string()
}
