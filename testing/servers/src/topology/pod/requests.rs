//! The containers of a pod, as requests.

use std::collections::HashMap;

use testcontainers::bollard::models::PortBinding;
use testcontainers::core::IntoContainerPort;
use testcontainers::{ContainerRequest, GenericImage, ImageExt};

use super::DIR;
use crate::topology::plain::{Owner, RunDir};
use crate::topology::plan::NodePlan;
use crate::topology::spec::ServerImage;

/// Label that names the harness that owns a container.
pub(crate) const OWNER_LABEL: &str = "org.locktopus.owner";
/// Label that names the machine of that harness, since an engine may serve several.
pub(crate) const MACHINE_LABEL: &str = "org.locktopus.machine";
/// Label that names the deployment.
pub(crate) const RUN_LABEL: &str = "org.locktopus.run";

/// The place of a container's files before they are copied to where the server may write.
const SEED: &str = "/tmp/seed";

/// Copies the seed once, so that a restarted server finds its own files, and becomes the server.
/// The server's user copies the files, because it must be able to replace them.
const ENTER: &str = r#"
mkdir -p "$0"
for seed in "$1"/*; do
    [ -e "$0/${seed##*/}" ] || cat "$seed" >"$0/${seed##*/}"
done
shift
exec "$@"
"#;

/// The user id of a node: each has its own, because packet rules recognise nodes by it.
pub(crate) fn uid_of(index: usize) -> u32 {
    2_000 + u32::try_from(index).unwrap_or(u32::MAX - 2_000)
}

/// Labels of every container of a deployment.
#[derive(Debug, Clone)]
pub(crate) struct Tags(Vec<(&'static str, String)>);

impl Tags {
    pub(crate) fn of(run: &RunDir) -> Self {
        Self(vec![
            (OWNER_LABEL, Owner::me().to_string()),
            (MACHINE_LABEL, machine()),
            (RUN_LABEL, run.name()),
        ])
    }
}

/// A name for this machine.
pub(crate) fn machine() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// The container that owns the network namespace and publishes `ports`.
pub(crate) fn idle(
    image: &ServerImage,
    ports: Vec<u16>,
    tags: &Tags,
) -> ContainerRequest<GenericImage> {
    let mut base = GenericImage::new(image.name(), image.tag()).with_entrypoint("sleep");
    for port in &ports {
        // A binding without this is silently dropped.
        base = base.with_exposed_port(port.tcp());
    }
    base.with_cmd(["infinity"])
        .with_labels(tags.0.clone())
        .with_host_config_modifier(move |config| {
            // Without an init the first process ignores the request to end.
            config.init = Some(true);
            config.publish_all_ports = Some(false);
            let bindings = ports.iter().map(|port| {
                let binding = PortBinding {
                    // Servers without passwords must not be reachable from other machines.
                    host_ip: Some("127.0.0.1".to_owned()),
                    host_port: Some(port.to_string()),
                };
                (format!("{port}/tcp"), Some(vec![binding]))
            });
            config.port_bindings = Some(bindings.collect::<HashMap<_, _>>());
        })
}

/// One server inside the pod.
pub(crate) fn server(
    image: &ServerImage,
    pod: &str,
    uid: u32,
    plan: &NodePlan,
    tags: &Tags,
) -> ContainerRequest<GenericImage> {
    let command = ["-c", ENTER, DIR, SEED, image.server_program()];
    let command = command.into_iter().map(str::to_owned);
    let mut request = GenericImage::new(image.name(), image.tag())
        .with_entrypoint("sh")
        .with_cmd(command.chain(plan.args.iter().cloned()))
        .with_user(format!("{uid}:{uid}"))
        .with_labels(tags.0.clone());
    for (file, content) in &plan.files {
        request = request.with_copy_to(format!("{SEED}/{file}"), content.clone().into_bytes());
    }
    inside(request, pod, None)
}

/// The container that changes packet rules.
pub(crate) fn helper(
    image: (&str, &str),
    pod: &str,
    tags: &Tags,
) -> ContainerRequest<GenericImage> {
    let request = GenericImage::new(image.0, image.1)
        .with_entrypoint("sleep")
        .with_cmd(["infinity"])
        .with_labels(tags.0.clone());
    inside(request, pod, Some("NET_ADMIN"))
}

/// Puts a container into the pod's namespace. The dedicated setter would also create a network.
fn inside(
    request: ContainerRequest<GenericImage>,
    pod: &str,
    capability: Option<&'static str>,
) -> ContainerRequest<GenericImage> {
    let mode = format!("container:{pod}");
    request.with_host_config_modifier(move |config| {
        config.network_mode = Some(mode.clone());
        config.publish_all_ports = Some(false);
        config.port_bindings = None;
        if let Some(capability) = capability {
            config.cap_add = Some(vec![capability.to_owned()]);
            config.init = Some(true);
        }
    })
}
