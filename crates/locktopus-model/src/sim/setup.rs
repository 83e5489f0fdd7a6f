//! What a seed decides about a schedule before it begins.

use crate::Rng;
use crate::redis::ScriptTime;
use crate::sim::actor::OUTAGE;
use crate::sim::client::Habits;
use crate::sim::config::Config;
use crate::sim::kind::Kind;
use crate::sim::net::{Mishap, Weather};
use crate::sim::node::LONGEST_LAG;
use crate::sim::rules::{Flaw, MS, Micros, Rules, Strategy};

/// Everything that is fixed for one schedule.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) rules: Rules,
    pub(super) habits: Habits,
    pub(super) weather: Weather,
    pub(super) trouble: Trouble,
    pub(super) processes: usize,
    /// Tasks of each process, at most.
    pub(super) tasks: u64,
    pub(super) script_time: ScriptTime,
    /// When nothing new begins any more.
    pub(super) end: Micros,
    pub(super) faults: Faults,
    /// Clients of another library, which cannot queue, listen to announcements.
    pub(super) strangers: bool,
}

/// How often what goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    pub(super) crashes: u64,
    pub(super) pauses: u64,
    pub(super) longest_pause: Micros,
    /// Connections that carry messages break.
    pub(super) cuts: u64,
    /// The server's clock is set, forward by less than the margin or backward by anything.
    pub(super) steps: u64,
    /// Times without memory.
    pub(super) droughts: u64,
    /// The primary dies and a replica takes over.
    pub(super) failovers: u64,
    /// The primary and its replica change places.
    pub(super) changes: u64,
    /// Subscriptions in a thousand that end up on the replica.
    pub(super) misplaced: u64,
    /// Somebody takes the name for another kind, or loses the number of a semaphore.
    pub(super) strangers: u64,
}

/// What a schedule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Climate {
    Calm,
    Hiccup,
    Lossy,
    Slow,
    Rough,
}

/// What goes wrong where next to nothing does, so that consequences can be bounded closely.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// Something happens to one message.
    Mishap(Mishap),
    /// One process stops hearing messages, and notices after this time.
    Cut { at: Micros, notice: Micros },
    /// As much as there is room for.
    Much,
}

impl Trouble {
    pub(super) fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn mishap(self) -> Option<Mishap> {
        match self {
            Self::Mishap(mishap) => Some(mishap),
            _ => None,
        }
    }

    fn draw(rng: &mut Rng, climate: Climate, rules: &Rules, config: &Config) -> Self {
        if config.failovers {
            return Self::Much;
        }
        match climate {
            Climate::Calm => Self::None,
            Climate::Hiccup => match rng.below(3) {
                0 => Self::Mishap(Mishap {
                    message: 1 + rng.below(200),
                    delay: None,
                }),
                1 => {
                    let delay = Some(rng.between(rules.call_timeout / 4, rules.call_timeout));
                    Self::Mishap(Mishap {
                        message: 1 + rng.below(200),
                        delay,
                    })
                }
                _ => Self::Cut {
                    at: rng.between(0, rules.lease * 2),
                    notice: rng.between(0, 300) * MS,
                },
            },
            Climate::Lossy | Climate::Slow | Climate::Rough => Self::Much,
        }
    }
}

impl Setup {
    pub(super) fn draw(rng: &mut Rng, config: &Config) -> Self {
        let climate = *rng.pick(&[
            Climate::Calm,
            Climate::Hiccup,
            Climate::Lossy,
            Climate::Slow,
            Climate::Rough,
        ]);
        let quiet = matches!(climate, Climate::Calm | Climate::Hiccup);
        let weather = weather(rng, climate);
        let lease = if quiet {
            rng.between(2_000, 6_000)
        } else {
            rng.between(150, 1_500)
        } * MS;
        let call_timeout = (weather.usual.1 * 4 + 10 * MS).max(lease / 10);
        let rules = Rules {
            lease,
            heartbeat: rng.between(20, 1_000) * MS,
            call_timeout,
            drift_ppm: 10_000,
            clock_step: 5 * MS,
            outage: lease * 4,
            linger: lease / 2,
            kind: config.kind,
            total: if config.kind.is_counted() {
                rng.between(1, 5)
            } else {
                1
            },
            tokens: *rng.pick(&[1, 1, 4, 64]),
            keep: if matches!(config.kind, Kind::Lock | Kind::Mutex) {
                *rng.pick(&[0, 0, lease / 10, lease / 3])
            } else {
                0
            },
            flaw: config.flaw,
        };
        let length = if quiet {
            lease * 2
        } else {
            lease * rng.between(4, 10)
        };
        Self {
            habits: habits(rng, config, climate, &rules),
            weather,
            trouble: Trouble::draw(rng, climate, &rules, config),
            processes: usize::try_from(rng.between(if quiet { 1 } else { 2 }, 4)).unwrap_or(2),
            tasks: *rng.pick(&[1, 1, 2, if quiet { 4 } else { 2 }]),
            script_time: *rng.pick(&[
                ScriptTime::Frozen,
                ScriptTime::Advances(1),
                ScriptTime::Advances(150),
            ]),
            end: length,
            faults: Faults {
                strangers: if config.strangers { 40 } else { 0 },
                ..faults(rng, config, climate, &rules)
            },
            strangers: rng.permille(300),
            rules,
        }
    }

    /// How long the lock may be free and wanted before that is a fault. Where nothing is lost a release or a push
    /// is enough, so it is far less than a heartbeat; else heartbeats must do it, several of which may be lost.
    pub(super) fn patience(&self, crashes: u64) -> Micros {
        let Rules {
            lease,
            call_timeout,
            ..
        } = self.rules;
        let (beat, travel) = (self.slowest_beat(), self.weather.slowest());
        let poll = self.habits.strategies.contains(&Strategy::Poll);
        let polls = if poll { 110 * MS } else { 0 };
        // Who listens to a replica hears later, and has to ask.
        let replica = if self.faults.misplaced > 0 {
            LONGEST_LAG + 4 * travel
        } else {
            0
        };
        // Now and then a free lock is left to strangers for a moment.
        let left = if self.strangers { 60 * MS } else { 0 };
        let smooth = self.rules.margin(lease) + 10 * travel + 12 * MS + polls + replica + left;
        // Whoever keeps a lease is asked for it, unless the message is lost.
        let keep = self.rules.keep;
        match self.trouble {
            Trouble::None => smooth,
            // A call that fails, another one, and a pause; or a heartbeat instead of a push.
            Trouble::Mishap(Mishap { delay, .. }) => {
                smooth + delay.unwrap_or(0) + 3 * call_timeout + 250 * MS + beat * 5 / 4 + keep
            }
            Trouble::Cut { notice, .. } => smooth + notice + 4 * travel + keep,
            Trouble::Much => {
                let lapse = lease + self.rules.longest_place() + 2 * beat;
                let crashes = i64::try_from(crashes).unwrap_or(0);
                let retries = 20 * (beat + call_timeout) + 2_000 * MS;
                let changes = i64::try_from(self.faults.changes).unwrap_or(0) * OUTAGE.1;
                lapse * (2 + crashes) + retries + self.faults.longest_pause + keep + changes
            }
        }
    }

    /// How long a waiter may not ask for the lock: a pause, failed calls, and pauses after them.
    pub(super) fn silence(&self) -> Micros {
        self.slowest_beat() * 5 / 4 + 3 * self.rules.call_timeout + 700 * MS
    }

    fn slowest_beat(&self) -> Micros {
        let beats = self
            .habits
            .strategies
            .iter()
            .map(|strategy| self.rules.beat(*strategy));
        beats.max().unwrap_or(0)
    }
}

fn weather(rng: &mut Rng, climate: Climate) -> Weather {
    let usual = match climate {
        // All take the same time, so none overtakes another: as on one connection.
        Climate::Calm | Climate::Hiccup => {
            let longest = *rng.pick(&[MS, 8 * MS, 30 * MS]);
            let travel = rng.between(100, longest);
            (travel, travel)
        }
        Climate::Lossy | Climate::Rough => (100, rng.between(MS, 10 * MS)),
        Climate::Slow => (MS, rng.between(5 * MS, 40 * MS)),
    };
    let quiet = Weather {
        loss: 0,
        copies: 0,
        usual,
        stuck: 0,
        longest: 0,
    };
    match climate {
        Climate::Calm | Climate::Hiccup => quiet,
        Climate::Lossy | Climate::Rough => Weather {
            loss: rng.below(150),
            copies: rng.below(80),
            stuck: rng.below(40),
            longest: rng.between(50, 800) * MS,
            ..quiet
        },
        Climate::Slow => Weather {
            stuck: 100,
            longest: rng.between(100, 600) * MS,
            ..quiet
        },
    }
}

fn habits(rng: &mut Rng, config: &Config, climate: Climate, rules: &Rules) -> Habits {
    let handing = Strategy::HandOff { confirm: false };
    let confirming = Strategy::HandOff { confirm: true };
    let all = vec![
        handing,
        handing,
        handing,
        confirming,
        Strategy::Notify,
        Strategy::Poll,
    ];
    let strategies = match climate {
        Climate::Calm => rng
            .pick(&[
                vec![handing],
                vec![handing, confirming],
                vec![Strategy::Notify],
                all,
            ])
            .clone(),
        Climate::Hiccup => vec![handing],
        Climate::Lossy | Climate::Slow | Climate::Rough => all,
    };
    let quiet = matches!(climate, Climate::Calm | Climate::Hiccup);
    let lease = rules.lease;
    let trouble = if matches!(config.flaw, Some(Flaw::DropsNothing)) {
        600
    } else {
        200
    };
    Habits {
        strategies,
        rest: (0, lease / 6),
        hold: if quiet {
            (MS, lease / 8)
        } else {
            (MS, lease * 3 / 2)
        },
        fixed: if quiet { 100 } else { 300 },
        drops: rng.below(trouble),
        cancels: rng.below(if quiet { 950 } else { 300 }),
        impatient: rng.below(150),
        limited: rng.below(500),
        patience: (
            MS,
            if quiet {
                rng.between(40, 400) * MS
            } else {
                lease
            },
        ),
    }
}

fn faults(rng: &mut Rng, config: &Config, climate: Climate, rules: &Rules) -> Faults {
    let failovers = if config.failovers {
        1 + rng.below(2)
    } else {
        0
    };
    let misplaced = *rng.pick(&[0, 0, 300, 1_000]);
    if climate != Climate::Rough {
        // A clock that is set back just before its server dies may take tokens with it.
        let quiet = matches!(climate, Climate::Calm | Climate::Hiccup);
        let steps = if quiet || config.failovers {
            0
        } else {
            rng.below(2)
        };
        let changes = if quiet || config.failovers {
            0
        } else {
            rng.below(3)
        };
        return Faults {
            failovers,
            steps,
            changes,
            misplaced,
            ..Faults::default()
        };
    }
    Faults {
        crashes: rng.below(4),
        pauses: rng.below(5),
        longest_pause: rules.lease * 2,
        cuts: rng.below(4),
        steps: if config.failovers { 0 } else { rng.below(3) },
        droughts: rng.below(2),
        failovers,
        changes: if config.failovers { 0 } else { rng.below(2) },
        misplaced,
        ..Faults::default()
    }
}
