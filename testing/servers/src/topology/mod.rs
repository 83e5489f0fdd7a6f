//! Real servers for tests and benchmarks: started, watched until ready, broken on purpose, and
//! always removed.
//!
//! [`start`] takes a [`Spec`] and a [`ProviderKind`] and returns a [`Deployment`]. Its nodes have
//! literal loopback addresses with either provider. Containers need the cargo feature `pod`.
//!
//! ```no_run
//! use locktopus_servers::topology::{ProviderKind, Spec, TopologyKind, start};
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), locktopus_servers::topology::TopologyError> {
//! let deployment = start(ProviderKind::Plain, &Spec::new(TopologyKind::SENTINEL)).await?;
//! deployment.primary().await?.crash().await?;
//! let next = deployment.wait_writable("any", Duration::from_secs(15)).await?;
//! println!("{} took over at {}", next.name(), next.addr());
//! deployment.stop().await
//! # }
//! ```
//!
//! # What it runs
//!
//! Processes: the program of [`Spec::with_binary`], or the one that `LOCKTOPUS_SERVER_BIN` names,
//! or `redis-server` or `valkey-server` from `PATH`. Containers: [`Spec::with_image`]. Missing
//! images are not downloaded; `scripts/build-images` makes them.
//!
//! # What is left behind
//!
//! Nothing, even after a panic or Ctrl-C. The plain provider leaves nothing even if the harness was
//! killed with SIGKILL. With containers, the next start removes those of a killed harness.
//!
//! # Modules
//!
//! | modules | what is in them |
//! |---|---|
//! | `spec`, `kind`, `knobs`, `words` | what to start |
//! | `plan`, `ports`, `tls` | the exact list of servers, their ports, files and certificates |
//! | `provider`, `host` | the ways to run a server, behind one set of verbs |
//! | `plain`, `pod` | servers as processes; servers as containers |
//! | `launch`, `form`, `ready` | starting all, joining a cluster, waiting until it is complete |
//! | `deployment`, `node`, `view`, `urls` | the running servers, who takes writes, how to connect |
//! | `vip`, `line` | an address that leads to any server; distance between client and server |
//! | `admin`, `resp`, `slot`, `unread` | commands to servers, replies, unread bytes |
//! | `poll`, `log`, `error` | waiting, the output of servers, errors |
//!
//! Layers, lowest first: log, resp, provider, slot, knobs, line, error, admin, unread, kind, poll,
//! tls, vip, spec, words, plan, plain, ports, pod, host, node, form, ready, urls, view, launch,
//! deployment.

mod admin;
mod deployment;
mod error;
mod form;
mod host;
mod kind;
mod knobs;
mod launch;
mod line;
mod log;
mod node;
mod plain;
mod plan;
#[cfg(feature = "pod")]
mod pod;
mod poll;
mod ports;
mod provider;
mod ready;
mod resp;
mod slot;
mod spec;
mod tls;
mod unread;
mod urls;
mod view;
mod vip;
mod words;

pub use deployment::Deployment;
pub use error::TopologyError;
pub use kind::TopologyKind;
pub use knobs::Knobs;
pub use node::{Node, Role};
pub use plain::clock_or_skip;
pub use provider::{Caps, Isolation, ProviderKind};
pub use resp::Resp;
pub use slot::slot_of;
pub use spec::{ServerImage, Spec};
pub use tls::TlsFiles;
pub use vip::Vip;

use tokio::sync::OnceCell;

use launch::Launched;
use ports::PortBlock;

/// Blocks of ports to try before giving up: another program may take a port between the probe and
/// the server's start.
const PORT_ATTEMPTS: usize = 5;

/// Starts a topology and waits until it is complete.
///
/// # Errors
///
/// [`TopologyError::NoServerProgram`], [`TopologyError::ImageMissing`] or [`TopologyError::Engine`]
/// if there is nothing to run it with; [`TopologyError::ServerEnded`] with its last output if a
/// server refuses its options; [`TopologyError::NotReached`] if it does not become ready;
/// [`TopologyError::Unsupported`] if the provider is not compiled in. An error removes everything
/// that was started.
///
/// # Cancel safety
///
/// Dropping the future removes everything that was started.
pub async fn start(provider: ProviderKind, spec: &Spec) -> Result<Deployment, TopologyError> {
    spec.kind().check()?;
    if spec.round_trip().is_some() && provider != ProviderKind::Plain {
        return Err(TopologyError::Unsupported {
            verb: "put servers far away".to_owned(),
            provider,
            needs: "the plain provider: proxies outside a container are not where its servers look for each other"
                .to_owned(),
        });
    }
    sweep_once(provider).await;
    let bus = matches!(spec.kind(), TopologyKind::Cluster { .. });
    let mut attempt = 1;
    let launched = loop {
        let ports = PortBlock::reserve(plan::ports_of(spec), bus)?;
        match launch_on(provider, spec, ports).await {
            Err(error) if error.is_address_in_use() && attempt < PORT_ATTEMPTS => attempt += 1,
            outcome => break outcome?,
        }
    };
    let deployment = Deployment::settle(spec.kind(), launched).await?;
    deployment.set_round_trip(spec.round_trip().unwrap_or_default());
    Ok(deployment)
}

/// The capabilities of this provider's deployments on this machine, without starting one.
///
/// # Errors
///
/// [`TopologyError::Engine`] if the container engine does not answer,
/// [`TopologyError::Unsupported`] if the provider is not compiled in, or if `LOCKTOPUS_FAKETIME`
/// names a missing file.
#[cfg_attr(
    not(feature = "pod"),
    allow(clippy::unused_async, reason = "an engine is asked, processes are not")
)]
pub async fn caps(provider: ProviderKind) -> Result<Caps, TopologyError> {
    match provider {
        ProviderKind::Plain => launch::plain::caps(),
        #[cfg(feature = "pod")]
        ProviderKind::Pod => launch::pod::caps().await,
        #[cfg(not(feature = "pod"))]
        ProviderKind::Pod => Err(not_compiled_in(provider)),
    }
}

#[cfg(not(feature = "pod"))]
fn not_compiled_in(provider: ProviderKind) -> TopologyError {
    TopologyError::Unsupported {
        verb: "start".to_owned(),
        provider,
        needs: "the cargo feature `pod` of locktopus-servers".to_owned(),
    }
}

async fn launch_on(
    provider: ProviderKind,
    spec: &Spec,
    ports: PortBlock,
) -> Result<Launched, TopologyError> {
    match provider {
        ProviderKind::Plain => launch::plain::launch(spec, ports).await,
        #[cfg(feature = "pod")]
        ProviderKind::Pod => launch::pod::launch(spec, ports).await,
        #[cfg(not(feature = "pod"))]
        ProviderKind::Pod => Err(not_compiled_in(provider)),
    }
}

/// Once per process is enough: the next process removes what dies later. A failed sweep must not
/// stop a start that can succeed.
async fn sweep_once(provider: ProviderKind) {
    static FILES: OnceCell<()> = OnceCell::const_new();
    #[cfg(feature = "pod")]
    if provider == ProviderKind::Pod {
        static CONTAINERS: OnceCell<()> = OnceCell::const_new();
        CONTAINERS.get_or_init(pod::sweep).await;
    }
    #[cfg(not(feature = "pod"))]
    let _ = provider;
    FILES
        .get_or_init(|| async {
            let _ = tokio::task::spawn_blocking(plain::sweep).await;
        })
        .await;
}
