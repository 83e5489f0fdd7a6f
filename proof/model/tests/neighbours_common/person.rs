//! A person who wants the lock: a client of ours, or a thread of a Java service.

use locktopus_model::Rng;
use locktopus_model::redis::Reply;

use super::{EPOCH, Event, Town};

/// How long Redisson keeps a waiter that gives no time, in ms.
const FAIR_WAIT: &str = "300000";
const LEASE: &str = "8000";
const KEEP: &str = "604800000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Waits,
    Holds,
}

#[derive(Debug)]
pub(super) struct Person {
    pub(super) native: bool,
    number: usize,
    /// `<uuid>:<number>`; ours get a new one for each acquisition.
    pub(super) owner: String,
    pub(super) state: State,
    /// The number of acquisitions so far.
    pub(super) round: u64,
    pub(super) listens: bool,
    pub(super) deaf_since: i64,
    pub(super) stopped_until: i64,
    /// How long a place of ours is kept, in ms.
    pub(super) place: i64,
    /// Order of arrival in the queue.
    pub(super) arrived: u64,
    /// Whether something happened during this wait that allows others to overtake it.
    pub(super) troubled: bool,
    /// When it must have taken the lock, if it is first, the lock is free and it was called.
    pub(super) due: Option<i64>,
}

impl Person {
    pub(super) fn new(rng: &mut Rng, native: bool, number: usize) -> Self {
        Self {
            native,
            number,
            owner: String::new(),
            state: State::Idle,
            round: 0,
            listens: false,
            deaf_since: 0,
            stopped_until: 0,
            place: *rng.pick(&[4_000, 4_000, 20_000, 900_000]),
            arrived: 0,
            troubled: false,
            due: None,
        }
    }
}

impl Town {
    pub(super) fn happen(&mut self, person: usize, event: Event) -> Result<(), String> {
        let it = &self.people[person];
        let round = it.round;
        let current = match event {
            Event::Try(of) | Event::Subscribed(of) | Event::Release(of) | Event::GiveUp(of) => {
                of == round
            }
            _ => true,
        };
        if !current {
            return Ok(());
        }
        let acts = matches!(
            event,
            Event::Want | Event::Try(_) | Event::Release(_) | Event::GiveUp(_)
        );
        if acts && it.stopped_until > self.now {
            let at = it.stopped_until;
            self.at(at, person, event);
            return Ok(());
        }
        match event {
            Event::Want if it.state == State::Idle => self.want(person),
            Event::Try(_) if it.state == State::Waits => self.ask(person, false),
            Event::Subscribed(_) | Event::Hear if it.state == State::Waits => {
                self.people[person].listens = true;
                self.soon(person, Event::Try(round));
            }
            Event::Release(_) if it.state == State::Holds => self.release(person),
            Event::GiveUp(_) if it.state == State::Waits && it.native => self.release(person),
            Event::Deaf if it.listens => {
                let length = self.rng.between(1, 1_500);
                let it = &mut self.people[person];
                (it.listens, it.deaf_since, it.troubled) = (false, self.now, true);
                self.at(self.now + length, person, Event::Hear);
            }
            Event::Stop => {
                let length = self.rng.between(500, 9_000);
                let it = &mut self.people[person];
                (it.stopped_until, it.troubled) = (self.now + length, true);
            }
            Event::Die => self.die(person),
            Event::StepBack => self.offset -= self.rng.between(1, 20_000),
            Event::Lose => {
                let key = self.key(3);
                self.command(&["DEL", &key]);
                self.lost = true;
            }
            _ => return Ok(()),
        }
        if !matches!(event, Event::Try(_)) {
            let it = &self.people[person];
            let note = format!("{event:?} of {person} {} {:?}", it.owner, it.state);
            self.note(note);
        }
        Ok(())
    }

    fn want(&mut self, person: usize) {
        self.serial += 1;
        let serial = self.serial;
        let it = &mut self.people[person];
        it.round += 1;
        let (native, number, round) = (it.native, it.number, it.round);
        it.owner = if native {
            // Odd, like all owners of fair locks.
            let id = 2 * serial + 1;
            format!("{number:08x}-0000-8c70-a705-000000000000:{id}")
        } else {
            format!("71b96ce8-2746-4c1a-9b6e-0d2c1f0a9d11:{number}")
        };
        (it.state, it.troubled, it.arrived, it.due) = (State::Waits, false, serial, None);
        // Ours listen before they queue, Redisson's afterwards.
        (it.listens, it.deaf_since, it.stopped_until) = (native, self.now, 0);
        self.ask(person, true);
        if native && self.rng.permille(150) {
            let at = self.now + self.rng.between(1, 5_000);
            self.at(at, person, Event::GiveUp(round));
        }
        if !native && self.people[person].state == State::Waits {
            let longest = *self.rng.pick(&[5, 30, 300]);
            let at = self.now + self.rng.between(1, longest);
            self.at(at, person, Event::Subscribed(round));
        }
    }

    fn ask(&mut self, person: usize, first: bool) {
        let (owner, round, place) = {
            let it = &self.people[person];
            (it.owner.clone(), it.round, it.place)
        };
        let keys = self.keys();
        if !self.people[person].native {
            let now = (EPOCH + self.now).to_string();
            let args = [LEASE.into(), owner, FAIR_WAIT.into(), now];
            let keys = [keys[0].clone(), keys[2].clone(), keys[4].clone()];
            let reply = self.eval(|scripts| &scripts.java_lock, &keys, &args);
            self.note(format!("{person} (theirs) asks: {reply:?}"));
            if reply == Reply::Nil {
                self.granted(person);
            }
            return;
        }
        let texts = [&owner, LEASE, KEEP, "0", "f", "1", "1", "0", "PUBLISH"];
        let mut args: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        args.extend([place.to_string(), self.inbox(person), self.channel()]);
        if first {
            args.extend([String::new(), "1".to_owned()]);
        }
        let reply = self.eval_ours(|scripts| &scripts.acquire, &args);
        self.note(format!("{person} (ours) asks: {reply:?}"));
        if reply.as_int().is_some() || reply.items().first() == Some(&Reply::Int(1)) {
            self.granted(person);
        } else {
            let at = self.now + place / 4;
            self.at(at, person, Event::Try(round));
        }
    }

    fn granted(&mut self, person: usize) {
        let round = self.people[person].round;
        let it = &mut self.people[person];
        if it.state == State::Holds {
            return;
        }
        it.state = State::Holds;
        if !it.native {
            it.listens = false;
        }
        let hold = *self.rng.pick(&[5, 200, 3_000]);
        let at = self.now + self.rng.between(1, hold);
        self.at(at, person, Event::Release(round));
    }

    fn release(&mut self, person: usize) {
        let (owner, native) = (
            self.people[person].owner.clone(),
            self.people[person].native,
        );
        let keys = self.keys();
        self.people[person].state = State::Idle;
        self.people[person].listens = false;
        let reply = if native {
            let listener =
                String::from_utf8_lossy(self.names.native.as_deref().unwrap()).into_owned();
            let (channel, keep) = (self.channel(), KEEP.to_owned());
            let mut args = vec![
                owner,
                "f".into(),
                "1".into(),
                "PUBLISH".into(),
                channel,
                keep,
                listener,
            ];
            // A guess, right or wrong.
            if self.rng.permille(500) {
                args.push("1".into());
            }
            self.eval_ours(|scripts| &scripts.release, &args)
        } else {
            let channel = self.channel().into_bytes();
            let keys = [keys[0].clone(), keys[2].clone(), keys[4].clone(), channel];
            let now = (EPOCH + self.now).to_string();
            let args = ["0".into(), LEASE.into(), owner, "PUBLISH".into(), now];
            let reply = self.eval(|scripts| &scripts.java_unlock, &keys, &args);
            self.tells();
            reply
        };
        self.note(format!("{person} releases: {reply:?}"));
        let pause = *self.rng.pick(&[2, 500, 15_000]);
        let at = self.now + self.rng.between(1, pause);
        self.at(at, person, Event::Want);
    }

    /// Dies without a trace. Another person with another id takes its place.
    fn die(&mut self, person: usize) {
        let native = self.people[person].native;
        let number = 100 + usize::try_from(self.serial).unwrap();
        let mut other = Person::new(&mut self.rng, native, number);
        other.round = self.people[person].round + 1;
        self.people[person] = other;
        let at = self.now + self.rng.between(1, 10_000);
        self.at(at, person, Event::Want);
    }

    /// A message reaches a person, who comes, or has been granted the lock.
    pub(super) fn hear(&mut self, person: usize, channel: &str, word: &str) {
        let (round, waits) = (
            self.people[person].round,
            self.people[person].state == State::Waits,
        );
        let pushed = channel != self.own_channel(person);
        let (token, owner) = word.split_once(' ').unwrap_or((word, ""));
        if !waits || pushed && owner != self.people[person].owner {
            return;
        }
        if pushed && token.parse::<i64>().is_ok_and(|token| token > 0) {
            self.granted(person);
        } else {
            self.soon(person, Event::Try(round));
        }
    }
}
