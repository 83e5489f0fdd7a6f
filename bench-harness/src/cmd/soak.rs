//! `soak`: many locks for a long time, with server restarts, and nothing left at the end.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::CommandError;
use super::files::{create, save};
use super::text::style;
use crate::cmd::exit::Exit;
use crate::shared::provenance::{Harness, detect};
use crate::soak::{self, Asked, Check, Leak, Seen};

/// The default time between restarts of the server.
const BETWEEN_RESTARTS: Duration = Duration::from_secs(120);

/// Arguments of `soak`.
#[derive(Debug, Args)]
pub struct SoakArgs {
    /// How long to acquire locks, in minutes.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "lasts")]
    minutes: u32,
    /// The same as a duration, such as "90s".
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    lasts: Option<Duration>,
    /// Locks that are held and renewed throughout.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    held: usize,
    /// Waiters on one lock; each is served again and again.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    waiters: usize,
    /// Acquisitions started each second, even if earlier ones have not ended.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Number of server restarts; by default one every two minutes, and at least two.
    #[arg(long, value_name = "N")]
    restarts: Option<u32>,
    /// A small soak for tests: 25 seconds, 2,000 held locks, 500 waiters, 300 acquisitions a
    /// second.
    #[arg(long, conflicts_with_all = ["minutes", "lasts", "held", "waiters", "rate"])]
    smoke: bool,
    /// Plant a fault, to see its check fail; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    leak: Vec<Leak>,
    /// Where to write `soak.json` with all observations.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The content of `soak.json`.
#[derive(Serialize)]
struct Report<'a> {
    harness: Harness,
    asked: &'a Asked,
    seen: &'a Seen,
    checks: &'a [Check],
}

impl SoakArgs {
    fn asked(&self) -> Asked {
        let minutes = Duration::from_secs(60) * self.minutes;
        let lasts = self.lasts.unwrap_or(minutes);
        let often = u32::try_from(lasts.as_secs() / BETWEEN_RESTARTS.as_secs());
        let often = often.unwrap_or(u32::MAX).max(2);
        let leaks = self.leak.clone();
        if self.smoke {
            return Asked {
                lasts: Duration::from_secs(25),
                held: 2_000,
                waiters: 500,
                rate: 300,
                restarts: self.restarts.unwrap_or(2),
                leaks,
            };
        }
        Asked {
            lasts,
            held: self.held,
            waiters: self.waiters,
            rate: self.rate,
            restarts: self.restarts.unwrap_or(often),
            leaks,
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub async fn run(args: &SoakArgs) -> Result<Exit, CommandError> {
    let asked = args.asked();
    if asked.lasts.is_zero() || asked.held == 0 || asked.waiters == 0 {
        let problem = "--lasts, --held and --waiters must be greater than zero";
        return Err(CommandError::Usage(problem.to_owned()));
    }
    eprintln!(
        "{} for acquisitions at {} per second, {} locks held, {} waiters, {} restarts",
        humantime::format_duration(asked.lasts),
        asked.rate,
        asked.held,
        asked.waiters,
        asked.restarts
    );
    let begun = Instant::now();
    let tell = |news: &str| eprintln!("[{:>4} s] {news}", begun.elapsed().as_secs());
    let seen = tokio::select! {
        seen = soak::run(&asked, tell) => seen?,
        _ = tokio::signal::ctrl_c() => return Err(CommandError::Interrupted),
    };
    let checks = soak::judge(&asked, &seen);
    super::print(&soak::table(&checks, &seen, style()))?;
    if let Some(directory) = &args.out {
        create(directory)?;
        let report = Report {
            harness: detect::harness(),
            asked: &asked,
            seen: &seen,
            checks: &checks,
        };
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| CommandError::Usage(error.to_string()))?;
        save(&directory.join("soak.json"), &text)?;
    }
    let failed = soak::failed(&checks);
    super::print(&format!(
        "soak: {} acquisitions, {} of {} checks failed\n",
        seen.granted,
        failed.len(),
        checks.len()
    ))?;
    if failed.is_empty() {
        return Ok(Exit::Ok);
    }
    eprintln!("FAILED: {}", failed.join("; "));
    Ok(Exit::Unmet)
}
