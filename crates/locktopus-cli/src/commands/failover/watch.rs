//! `failover watch`: takes and releases locks while you fail the servers over.

use std::time::Duration;

use clap::Args;
use locktopus::url::parse_duration;

use super::course::Watch;
use super::report::{self, Line};
use crate::commands::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{close, connect_to};

/// What to do while you cause the faults.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Stop after this time; else at Ctrl-C
    #[arg(long = "for", value_parser = parse_duration, value_name = "TIME")]
    pub(super) time: Option<Duration>,

    /// How many faults you will cause; seeing fewer is a failure
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) faults: usize,

    /// Connections, each acting as a process of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=64))]
    pub(super) connections: u8,

    /// Number of lock names; every connection wants each of them
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) names: u8,

    /// Lease of the locks. Every fourth name is renewed and held for longer
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "5s")]
    pub(super) lease: Duration,

    /// How long the other names are held, approximately
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "50ms")]
    pub(super) hold: Duration,

    /// Time between two lines
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "1s")]
    pub(super) interval: Duration,
}

/// Returns 1 if a promise was broken, or if nothing was seen that could have broken one.
pub(super) async fn run(args: &WatchArgs, context: &Context) -> Result<u8, Failure> {
    if args.interval.is_zero() || args.hold >= args.lease {
        let problem = "--interval must be longer than zero, and --hold shorter than --lease";
        return Err(Failure::usage(problem));
    }
    let urls = &context.config.urls()?.value;
    if urls.iter().any(|url| url.starts_with("memory:")) {
        return Err(Failure::usage(
            "memory: exists only in this process and cannot fail over",
        ));
    }
    // So that what the servers remember about the names goes soon after the end.
    let urls: Vec<_> = urls
        .iter()
        .map(|url| with(url, "token_retention", "1m"))
        .collect();
    let observer = connect_to(&urls).await?;
    let workers: Vec<_> = urls.iter().map(|url| with(url, "checks", "off")).collect();
    let mut instances = Vec::new();
    for _ in 0..args.connections {
        instances.push(connect_to(&workers).await?);
    }
    let watched = Watch::new(args, context, observer.clone(), &prefix())
        .run(&instances)
        .await;
    for locks in instances {
        close(locks).await;
    }
    let watch = watched?;
    let summary = watch.summary().await;
    close(observer).await;
    let failed = !summary.failed.is_empty();
    context
        .out
        .answer(&Line::Summary(Box::new(summary)), report::text)?;
    Ok(if failed { Exit::Failed } else { Exit::Ok }.code())
}

/// Adds an option to a URL, unless it is there.
fn with(url: &str, option: &str, value: &str) -> String {
    let options = url.split_once('?').map(|(_, options)| options);
    match options {
        Some(options)
            if options
                .split('&')
                .any(|one| one.split('=').next() == Some(option)) =>
        {
            url.to_owned()
        }
        Some(_) => format!("{url}&{option}={value}"),
        None => format!("{url}?{option}={value}"),
    }
}

/// A prefix that no other process uses: process id and time.
fn prefix() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    format!("locktopus-failover:{seconds:x}-{:x}:", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::with;

    #[test]
    fn an_option_that_was_given_stays() {
        assert_eq!(with("redis://a", "checks", "off"), "redis://a?checks=off");
        assert_eq!(
            with("redis://a?x=1", "checks", "off"),
            "redis://a?x=1&checks=off"
        );
        assert_eq!(
            with("redis://a?checks=on", "checks", "off"),
            "redis://a?checks=on"
        );
    }
}
