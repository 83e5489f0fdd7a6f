//! Starts a whole deployment in containers.

use std::sync::Arc;

use futures_util::future::join_all;

use super::Launched;
use crate::topology::error::TopologyError;
use crate::topology::host::Host;
use crate::topology::node::Node;
use crate::topology::plain::RunDir;
use crate::topology::plan::{self, NodePlan, Place};
use crate::topology::pod::engine::Engine;
use crate::topology::pod::partition::{self, Partition};
use crate::topology::pod::requests::{self, Tags};
use crate::topology::pod::{DIR, Pod, PodNode, remove_run};
use crate::topology::ports::PortBlock;
use crate::topology::provider::{Caps, ProviderKind};
use crate::topology::spec::{ServerImage, Spec};
use crate::topology::tls::Certificates;

/// The capabilities of containers on this machine.
pub(crate) async fn caps() -> Result<Caps, TopologyError> {
    let engine = Engine::connect().await?;
    Ok(caps_with(engine.has_image(partition::IMAGE).await?))
}

/// Starts every server of `spec` on the given ports.
pub(crate) async fn launch(spec: &Spec, ports: PortBlock) -> Result<Launched, TopologyError> {
    let engine = Engine::connect().await?;
    engine.require_image(&spec.image().to_string()).await?;
    let can_partition = engine.has_image(partition::IMAGE).await?;

    let run = Arc::new(RunDir::create()?);
    let outcome = launch_in(&engine, &run, spec, ports, can_partition).await;
    if outcome.is_err() {
        remove_run(&engine, &run.name()).await;
    }
    outcome
}

async fn launch_in(
    engine: &Engine,
    run: &Arc<RunDir>,
    spec: &Spec,
    ports: PortBlock,
    can_partition: bool,
) -> Result<Launched, TopologyError> {
    let certificates = spec.tls().then(Certificates::make).transpose()?;
    let tls = match &certificates {
        Some(certificates) => Some(certificates.write_client_files(run.path())?),
        None => None,
    };
    let plans = plan::nodes(
        spec,
        &Place {
            bind: None,
            dir: &|_| DIR.to_owned(),
            base: ports.base,
            certificates: certificates.as_ref(),
        },
    );

    let tags = Tags::of(run);
    let published = (ports.base..).take(usize::from(plan::ports_needed(spec)));
    let request = requests::idle(spec.image(), published.collect(), &tags);
    let idle = engine.start("start the pod", request).await?;
    let partition = Arc::new(Partition::new(engine.clone(), &idle, tags.clone()));
    let mut launched = Launched {
        provider: ProviderKind::Pod,
        caps: caps_with(can_partition),
        label: spec.image().to_string(),
        nodes: Vec::new(),
        sentinels: Vec::new(),
        proxies: Vec::new(),
        tls,
        pod: Some(Pod { idle, partition }),
        run: Arc::clone(run),
        _ports: ports,
    };
    let starter = Starter {
        engine: engine.clone(),
        image: spec.image(),
        tags,
    };
    let (sentinels, data): (Vec<_>, Vec<_>) = plans
        .into_iter()
        .enumerate()
        .partition(|(_, plan)| plan.sentinel);
    launched.nodes = starter.start(&launched, data).await?;
    launched.wait_data_nodes(spec).await?;
    launched.sentinels = starter.start(&launched, sentinels).await?;
    launched.wait_sentinels().await?;
    Ok(launched)
}

const fn caps_with(can_partition: bool) -> Caps {
    Caps {
        freeze: true,
        crash: true,
        stop_start: true,
        stall: true,
        peer_partition: can_partition,
        client_cut: can_partition,
        set_clock: false,
        connect_refused_when_dead: false,
        honest_latency: false,
    }
}

/// Starts servers in a pod.
struct Starter<'a> {
    engine: Engine,
    image: &'a ServerImage,
    tags: Tags,
}

impl Starter<'_> {
    async fn start(
        &self,
        launched: &Launched,
        plans: Vec<(usize, NodePlan)>,
    ) -> Result<Vec<Node>, TopologyError> {
        let Some(pod) = &launched.pod else {
            return Ok(Vec::new());
        };
        let starts = plans
            .iter()
            .map(|(index, plan)| self.start_one(pod, *index, plan));
        // Waits for all even if one fails, so that none is abandoned half started.
        join_all(starts).await.into_iter().collect()
    }

    async fn start_one(
        &self,
        pod: &Pod,
        index: usize,
        plan: &NodePlan,
    ) -> Result<Node, TopologyError> {
        let uid = requests::uid_of(index);
        let request = requests::server(self.image, pod.idle.id(), uid, plan, &self.tags);
        let container = self
            .engine
            .start(&format!("start {}", plan.name), request)
            .await?;
        let node = PodNode::new(
            plan,
            uid,
            container,
            self.engine.clone(),
            Arc::clone(&pod.partition),
        );
        Ok(Node::new(plan, Host::Pod(Box::new(node))))
    }
}
