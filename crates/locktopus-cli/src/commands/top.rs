//! `top`: shows the locks that are held, live.
//!
//! | file | what it is |
//! |---|---|
//! | `model` | the locks as last polled, and what several polls show |
//! | `view` | selection, order, filter, dialogs, keys |
//! | `columns` | chooses the columns that fit |
//! | `screen` | draws |

mod columns;
mod model;
mod screen;
mod view;

use std::io::{self, IsTerminal as _};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use locktopus::Locktopus;
use locktopus::url::parse_duration;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::Context;
use super::break_lock::take_away;
use super::list::{Listing, Pattern, all};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{LockArgs, close, connect};
use crate::output::colours_wanted;
use model::Model;
use view::{Action, Order, View};

/// Show the locks that are held, live
///
/// Marks leases that are not renewed and long waits, with a colour and an exclamation mark.
///
/// Keys: arrows or j and k select, Enter inspects, b breaks after asking why, / filters by name,
/// kind and holder, s and S sort by the next and the previous key, r reverses, q quits.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Show only names that match: * is any text, ? one character
    #[arg(default_value = "*")]
    pattern: String,

    /// How often to poll. Each poll reads all names that begin with the part before the first * or
    /// ?
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "1s")]
    interval: Duration,

    /// Sort by this key
    #[arg(long, value_enum, default_value_t, value_name = "KEY")]
    sort: Order,

    /// Mark waits that are longer than this
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "30s")]
    long_wait: Duration,
}

/// The result of a poll, or of breaking a lock.
enum News {
    Polled(Result<Listing, Failure>),
    Broke(String),
}

pub(crate) async fn run(args: &TopArgs, context: &Context) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "top needs a terminal; use locktopus ls without one",
        ));
    }
    if args.interval.is_zero() {
        return Err(Failure::usage("--interval must be longer than zero"));
    }
    let locks = connect(&context.config).await?;
    let servers = locks.backend().description.clone();
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let shown = show(&mut terminal, &locks, args, &servers).await;
    ratatui::restore();
    close(locks).await;
    shown.map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot use the terminal: {error}"))
}

async fn show(
    terminal: &mut DefaultTerminal,
    locks: &Locktopus,
    args: &TopArgs,
    servers: &str,
) -> io::Result<()> {
    let (tell, mut news) = mpsc::channel(16);
    let polling = tokio::spawn(poll(
        locks.clone(),
        args.pattern.clone(),
        args.interval,
        tell.clone(),
    ));
    let mut keys = keys();
    let mut clock = interval(Duration::from_millis(250));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut model = Model::new(servers, &args.pattern, args.long_wait);
    let mut view = View {
        colours: colours_wanted(),
        order: args.sort,
        ..View::default()
    };
    loop {
        let now = Instant::now();
        terminal.draw(|frame| screen::draw(frame, &model, &mut view, now))?;
        let action = tokio::select! {
            _ = clock.tick() => Action::None,
            key = keys.recv() => key.map_or(Action::Quit, |key| view.press(key, &model)),
            told = news.recv() => {
                match told {
                    Some(News::Polled(Ok(found))) => {
                        model.left_out = found.left_out.len();
                        model.update(Instant::now(), found.locks);
                    }
                    Some(News::Polled(Err(failure))) => model.failed(failure.message),
                    Some(News::Broke(message)) => view.say(message),
                    None => {}
                }
                Action::None
            }
        };
        match action {
            Action::None => {}
            Action::Quit => break,
            Action::Break {
                name,
                owner,
                reason,
            } => {
                let (locks, tell) = (locks.clone(), tell.clone());
                tokio::spawn(async move {
                    let said = break_it(&locks, &name, owner.as_deref(), reason).await;
                    // The screen may be closed by now.
                    let _ = tell.send(News::Broke(said)).await;
                });
            }
        }
    }
    polling.abort();
    Ok(())
}

/// Polls until the receiver is gone.
async fn poll(locks: Locktopus, pattern: String, pause: Duration, tell: mpsc::Sender<News>) {
    let pattern = Pattern::new(&pattern);
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found = all(&locks, &pattern).await;
        if tell.send(News::Polled(found)).await.is_err() {
            return;
        }
    }
}

/// Reads keys in a thread, because reading blocks. The thread ends with the process.
fn keys() -> mpsc::Receiver<KeyEvent> {
    let (tell, keys) = mpsc::channel(16);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            let Event::Key(key) = event else { continue };
            if key.kind == KeyEventKind::Press && tell.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

async fn break_it(locks: &Locktopus, name: &str, owner: Option<&str>, reason: String) -> String {
    match take_away(locks, name, &LockArgs::default(), owner, reason).await {
        Ok(broken) if broken.evicted.is_empty() => format!("{name:?} was not held"),
        Ok(broken) => {
            let fence = broken
                .fence
                .map(|fence| format!("; refuse tokens up to {fence}"));
            format!("{name:?} was taken away{}", fence.unwrap_or_default())
        }
        Err(failure) => failure.message,
    }
}
