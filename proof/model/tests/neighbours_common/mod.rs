//! A town whose people all want one fair lock.

mod person;
mod wronged;

use std::collections::BTreeMap;

use locktopus_core::{LockKind, LockName, LockTarget};
use locktopus_model::Rng;
use locktopus_model::lua::{Interpreter, Program};
use locktopus_model::redis::{Reply, Server};
use locktopus_protocol::Keys;
use locktopus_protocol::scripts::FAIR;

use crate::redisson::{fair_lock, fair_unlock};
use person::{Person, State};

/// A piece of a script, and its replacement.
pub(crate) type Change = (&'static str, &'static str);

/// How long a schedule lasts, in ms.
const LENGTH: i64 = 150_000;

/// An event in the life of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Starts to want the lock.
    Want,
    /// Asks for it, if it is still in this acquisition.
    Try(u64),
    Subscribed(u64),
    Release(u64),
    GiveUp(u64),
    /// Its listening connection breaks.
    Deaf,
    Hear,
    /// Pauses for a while.
    Stop,
    /// Dies, and another person takes its place.
    Die,
    /// The server's clock is set back.
    StepBack,
    /// The hash of our waiters is lost.
    Lose,
}

struct Scripts {
    acquire: Program,
    release: Program,
    java_lock: Program,
    java_unlock: Program,
}

/// One schedule.
struct Town {
    lua: Interpreter,
    scripts: Scripts,
    names: Keys,
    server: Server,
    rng: Rng,
    /// True time in ms.
    now: i64,
    /// The server's clock minus true time, in ms.
    offset: i64,
    agenda: BTreeMap<(i64, u64), (usize, Event)>,
    serial: u64,
    people: Vec<Person>,
    lost: bool,
    /// The last script left the lock free and called the first waiter.
    left_free: bool,
    last_holder: Option<String>,
    /// The latest events.
    story: Vec<String>,
}

/// Runs one schedule. The error names the person who was wronged.
pub(crate) fn run(seed: u64, changes: &[Change]) -> Result<(), String> {
    let mut town = Town::new(seed, changes);
    while let Some(((now, _), (person, event))) = town.agenda.pop_first() {
        if now > LENGTH {
            break;
        }
        town.now = now;
        town.left_free = false;
        town.server.clock = (EPOCH + now + town.offset) * 1_000 + town.rng.between(0, 999);
        if let Err(wrong) = town.happen(person, event).and_then(|()| town.judge()) {
            let from = town.story.len().saturating_sub(60);
            return Err(format!(
                "{}\n{now} ms: {wrong}",
                town.story[from..].join("\n")
            ));
        }
    }
    Ok(())
}

const EPOCH: i64 = 1_760_000_000_000;

impl Town {
    fn new(seed: u64, changes: &[Change]) -> Self {
        let lua = Interpreter::new().unwrap();
        let ours = |source: &str| {
            let changed = changes
                .iter()
                .fold(source.to_owned(), |text, (from, to)| text.replace(from, to));
            lua.load(&changed).unwrap()
        };
        for (from, _) in changes {
            let sources = [FAIR.acquire.source, FAIR.release.source];
            assert!(
                sources.iter().any(|text| text.contains(from)),
                "not there: {from}"
            );
        }
        let theirs = |source: &str| lua.load(source).unwrap();
        let scripts = Scripts {
            acquire: ours(FAIR.acquire.source),
            release: ours(FAIR.release.source),
            java_lock: theirs(&fair_lock()),
            java_unlock: theirs(&fair_unlock()),
        };
        let name = LockName::new("it").unwrap();
        let mut rng = Rng::new(seed);
        let (natives, javas) = (rng.between(1, 3), rng.between(1, 3));
        let mut town = Self {
            scripts,
            names: Keys::of(&LockTarget::new(name, LockKind::Fair)),
            server: Server::default(),
            now: 0,
            offset: rng.between(-30_000, 30_000),
            agenda: BTreeMap::new(),
            serial: 0,
            people: Vec::new(),
            lost: false,
            left_free: false,
            last_holder: None,
            story: Vec::new(),
            rng,
            lua,
        };
        for number in 0..natives + javas {
            let person = Person::new(
                &mut town.rng,
                number < natives,
                usize::try_from(number).unwrap(),
            );
            town.people.push(person);
            let at = town.rng.between(0, 3_000);
            town.at(at, town.people.len() - 1, Event::Want);
        }
        town.plan_trouble();
        town
    }

    fn plan_trouble(&mut self) {
        for event in [
            Event::Deaf,
            Event::Stop,
            Event::Die,
            Event::StepBack,
            Event::Lose,
        ] {
            // Troubles hide each other, so most schedules have only a few of each.
            let times = if self.rng.permille(300) {
                self.rng.between(1, 8)
            } else {
                0
            };
            let times = if event == Event::Lose {
                times.min(1)
            } else {
                times
            };
            for _ in 0..times {
                let (at, person) = (self.rng.between(0, LENGTH), self.anybody());
                self.at(at, person, event);
            }
        }
    }

    fn anybody(&mut self) -> usize {
        usize::try_from(self.rng.below(self.people.len() as u64)).unwrap()
    }

    fn at(&mut self, at: i64, person: usize, event: Event) {
        self.serial += 1;
        self.agenda
            .insert((at.max(self.now), self.serial), (person, event));
    }

    fn soon(&mut self, person: usize, event: Event) {
        let at = self.now + self.rng.between(1, 20);
        self.at(at, person, event);
    }

    fn note(&mut self, what: String) {
        self.story.push(format!("{} ms: {what}", self.now));
    }

    /// Runs one of our scripts.
    fn eval_ours(&mut self, pick: impl Fn(&Scripts) -> &Program, args: &[String]) -> Reply {
        // Our scripts may pass over a waiter that does not listen now.
        for it in self
            .people
            .iter_mut()
            .filter(|it| it.state == State::Waits && !it.listens)
        {
            it.troubled = true;
        }
        let reply = self.eval(pick, &self.keys(), args);
        self.tells();
        reply
    }

    /// Notes whether the script left the lock free, and so called the first waiter.
    fn tells(&mut self) {
        let lock = self.key(0);
        self.left_free = self.command(&["EXISTS", &lock]) == Reply::Int(0);
    }

    /// Runs a script, and delivers its messages.
    fn eval(
        &mut self,
        pick: impl Fn(&Scripts) -> &Program,
        keys: &[Vec<u8>],
        args: &[String],
    ) -> Reply {
        self.count_listeners();
        let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.clone().into_bytes()).collect();
        let program = pick(&self.scripts).clone();
        let reply = self
            .lua
            .eval(&mut self.server, &program, keys, &args)
            .unwrap()
            .reply;
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
        for said in self.server.take_published() {
            let (channel, word) = (text(&said.channel), text(&said.message));
            for person in 0..self.people.len() {
                if self.hears(person, &channel) {
                    self.hear(person, &channel, &word);
                }
            }
        }
        reply
    }

    fn channel(&self) -> String {
        text(self.names.channel.as_deref().unwrap())
    }

    fn own_channel(&self, person: usize) -> String {
        format!("{}:{}", self.channel(), self.people[person].owner)
    }

    fn inbox(&self, person: usize) -> String {
        format!("{}{person:032x}", self.names.inbox.as_deref().unwrap())
    }

    fn hears(&self, person: usize, channel: &str) -> bool {
        let it = &self.people[person];
        it.listens
            && (channel == self.own_channel(person) || it.native && channel == self.inbox(person))
    }

    fn count_listeners(&mut self) {
        self.server.listeners.clear();
        for person in 0..self.people.len() {
            if !self.people[person].listens {
                continue;
            }
            let mut channels = vec![self.own_channel(person)];
            if self.people[person].native {
                let native = text(self.names.native.as_deref().unwrap());
                channels.extend([self.inbox(person), self.channel(), native]);
            }
            for channel in channels {
                *self
                    .server
                    .listeners
                    .entry((false, channel.into_bytes()))
                    .or_default() += 1;
            }
        }
    }

    fn command(&mut self, words: &[&str]) -> Reply {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.server.command(&words).unwrap()
    }

    fn key(&self, place: usize) -> String {
        self.names.names[place].clone()
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.names
            .names
            .iter()
            .map(|name| name.clone().into_bytes())
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
