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
    /// Start servers, print their URLs, keep them until Ctrl-C (or `down`).
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
    /// Tell running `up` commands of this user to stop.
    Down {
        /// Process id of one `up`, as `list` shows it; without it, all of them.
        pid: Option<u32>,
    },
    /// Show the kinds of topology, and the running `up` commands.
    List,
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
    match &args.verb {
        Verb::Up {
            kind,
            provider,
            image,
        } => up(*kind, *provider, image.clone()).await,
        Verb::Down { pid } => down(*pid),
        Verb::List => list(),
    }
}

async fn up(
    kind: TopologyKind,
    provider: ProviderKind,
    image: Option<ServerImage>,
) -> Result<Exit, CommandError> {
    let mut spec = Spec::new(kind);
    if let Some(image) = image {
        spec = spec.with_image(image);
    }
    // Listen from the start, so that a signal during the start leaves no servers behind.
    let stop = stop_signal()?;
    tokio::pin!(stop);
    let deployment = tokio::select! {
        deployment = topology::start(provider, &spec) => deployment?,
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
    let register = Register::enter(&deployment.urls().join(" "))?;
    eprintln!("Ctrl-C stops them.");
    stop.await;
    drop(register);
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

/// A file in the temporary directory that lists this command; dropping it deletes the file.
struct Register(std::path::PathBuf);

const REGISTER: &str = "locktopus-topology-";

impl Register {
    fn enter(urls: &str) -> Result<Self, CommandError> {
        let path = std::env::temp_dir().join(format!("{REGISTER}{}", std::process::id()));
        std::fs::write(&path, urls).map_err(|source| CommandError::Write {
            path: path.clone(),
            source,
        })?;
        Ok(Self(path))
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Process ids and URLs of the running `up` commands.
fn running() -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else {
        return Vec::new();
    };
    let mut running = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(REGISTER))
            .and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        // A killed `up` leaves its file behind, and another process may have its pid by now.
        let program = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&program).contains("topology") {
            running.push((
                pid,
                std::fs::read_to_string(entry.path()).unwrap_or_default(),
            ));
        } else {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    running
}

fn down(pid: Option<u32>) -> Result<Exit, CommandError> {
    use rustix::process::{Pid, Signal, kill_process};

    let chosen: Vec<_> = running()
        .into_iter()
        .filter(|(found, _)| pid.is_none_or(|pid| pid == *found))
        .collect();
    if chosen.is_empty() {
        return Err(CommandError::Usage(
            "no such topology runs; see `topology list`".to_owned(),
        ));
    }
    for (found, urls) in chosen {
        let process = i32::try_from(found).ok().and_then(Pid::from_raw);
        let told = process.is_some_and(|process| kill_process(process, Signal::TERM).is_ok());
        super::print(&format!(
            "{found}  {urls}  {}\n",
            if told {
                "stopping"
            } else {
                "could not be signalled"
            }
        ))?;
    }
    Ok(Exit::Ok)
}

fn list() -> Result<Exit, CommandError> {
    let mut text = String::from("Kinds:");
    for kind in TopologyKind::ALL {
        text.push_str(&format!(" {kind}"));
    }
    text.push_str("\nRunning:\n");
    let running = running();
    if running.is_empty() {
        text.push_str("  none\n");
    }
    for (pid, urls) in running {
        text.push_str(&format!("  {pid}  {urls}\n"));
    }
    super::print(&text)?;
    Ok(Exit::Ok)
}
