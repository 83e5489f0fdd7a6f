//! `topology`: starts servers and keeps them until Ctrl-C.

use clap::{Args, Subcommand};
use locktopus_servers::topology::{
    self, ProviderKind, ServerImage, Spec, TopologyError, TopologyKind,
};

use super::CommandError;
use crate::cmd::exit::Exit;

/// Arguments of `topology`.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start servers, print their URLs, keep them until Ctrl-C.
    Up {
        /// standalone, sentinel, cluster, quorum or tls.
        #[arg(value_parser = parse::<TopologyKind>)]
        kind: TopologyKind,
        /// Server processes (`plain`) or containers (`pod`).
        #[arg(long, default_value = "plain", value_parser = parse::<ProviderKind>)]
        provider: ProviderKind,
        /// Image for containers, such as `valkey/valkey:8.1`.
        #[arg(long, value_parser = parse::<ServerImage>)]
        image: Option<ServerImage>,
    },
}

fn parse<T: std::str::FromStr<Err = TopologyError>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: TopologyError| error.to_string())
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub async fn run(args: &TopologyArgs) -> Result<Exit, CommandError> {
    let Verb::Up {
        kind,
        provider,
        image,
    } = &args.verb;
    let kind = *kind;
    let mut spec = Spec::new(kind);
    if let Some(image) = image {
        spec = spec.with_image(image.clone());
    }
    // Listen from the start, so that a signal during the start leaves no servers behind.
    let stop = stop_signal()?;
    tokio::pin!(stop);
    let deployment = tokio::select! {
        deployment = topology::start(*provider, &spec) => deployment?,
        () = &mut stop => return Ok(Exit::Ok),
    };
    let mut text = format!("{kind} on {} ({provider})\n", deployment.server_version());
    for url in deployment.urls() {
        text.push_str(&format!("  {url}\n"));
    }
    for node in deployment.nodes().iter().chain(deployment.sentinels()) {
        text.push_str(&format!("  {} at {}\n", node.name(), node.addr()));
    }
    super::print(&text)?;
    eprintln!("Ctrl-C stops them.");
    stop.await;
    deployment.stop().await?;
    Ok(Exit::Ok)
}

/// Completes on SIGINT (Ctrl-C) or SIGTERM.
fn stop_signal() -> Result<impl Future<Output = ()>, CommandError> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed =
        |error: std::io::Error| CommandError::Usage(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
