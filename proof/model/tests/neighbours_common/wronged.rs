//! Judges whether a person was wronged.

use locktopus_model::redis::Reply;

use super::person::{Person, State};
use super::{Town, text};

/// How long a listening first waiter may take to come after its call, in ms.
const COMES: i64 = 1_000;
/// After this time without listening, a waiter may count as dead, in ms.
const DEAF: i64 = 2_000;

impl Town {
    /// Judges the lock after each event.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        let (lock, queue, waiters, deadlines) =
            (self.key(0), self.key(2), self.key(3), self.key(4));
        let holder = self
            .command(&["HKEYS", &lock])
            .items()
            .first()
            .map(|it| text(it.bytes()));
        let list = self.command(&["LRANGE", &queue, "0", "-1"]);
        let list: Vec<String> = list.items().iter().map(|it| text(it.bytes())).collect();
        for person in 0..self.people.len() {
            let it = &self.people[person];
            if it.state != State::Waits || holder.as_ref() == Some(&it.owner) {
                self.people[person].due = None;
                continue;
            }
            let owner = it.owner.clone();
            let (native, listens, troubled) = (it.native, it.listens, it.troubled);
            let silent = native && it.stopped_until > 0;
            let times = list.iter().filter(|other| **other == owner).count();
            if times > 1 {
                return Err(format!("{owner} stands {times} times in {list:?}"));
            }
            let deaf = !listens && self.now - self.people[person].deaf_since > DEAF;
            if times == 0 && !self.lost && !deaf && !silent {
                return Err(format!("{owner} is not in {list:?} any more"));
            }
            if native && !silent && !self.lost {
                self.judge_record(&waiters, &owner)?;
            }
            if times == 1 && self.command(&["ZSCORE", &deadlines, &owner]) == Reply::Nil {
                return Err(format!("{owner} has no deadline"));
            }
            let first = holder.is_none() && list.first() == Some(&owner);
            self.judge_due(person, first && listens && !troubled && !self.lost)?;
        }
        self.judge_order(holder.as_deref())
    }

    /// Whether the record of one of ours stays as long as its place, and not for ever.
    fn judge_record(&mut self, waiters: &str, owner: &str) -> Result<(), String> {
        let record = self.command(&["HGET", waiters, owner]);
        let record = text(record.bytes());
        let until = record
            .split(' ')
            .next()
            .and_then(|until| until.parse::<i64>().ok());
        let until = until.ok_or_else(|| format!("nothing is known of {owner} any more"))?;
        let stays = self.command(&["PTTL", waiters]).as_int().unwrap_or(-1);
        if stays < until - self.server.clock / 1_000 {
            return Err(format!(
                "{owner} has a place until {until}, and is forgotten in {stays} ms"
            ));
        }
        Ok(())
    }

    /// Whether the first waiter comes after it was called.
    fn judge_due(&mut self, person: usize, first: bool) -> Result<(), String> {
        let now = self.now;
        let told = self.left_free;
        let it = &mut self.people[person];
        if !first {
            it.due = None;
        } else if told && it.due.is_none() {
            it.due = Some(now + COMES);
        }
        match it.due {
            Some(due) if now > due => Err(format!(
                "{} is first, and the lock is free since {}",
                it.owner,
                due - COMES
            )),
            _ => Ok(()),
        }
    }

    /// Whether the lock was granted to a person who came later and stands behind another one.
    fn judge_order(&mut self, holder: Option<&str>) -> Result<(), String> {
        let new = holder.filter(|holder| self.last_holder.as_deref() != Some(holder));
        let new = new.map(str::to_owned);
        self.last_holder = holder.map(str::to_owned);
        let Some(new) = new.filter(|_| !self.lost) else {
            return Ok(());
        };
        let Some(arrived) = self
            .people
            .iter()
            .find(|it| it.owner == new)
            .map(|it| it.arrived)
        else {
            return Ok(());
        };
        let waiting =
            |it: &&Person| it.state == State::Waits && it.owner != new && it.arrived < arrived;
        // Redisson gives a free lock only to the first in its list, so its waiters behind one that
        // does not come cannot have it.
        let stuck = self
            .people
            .iter()
            .filter(waiting)
            .filter(|it| !it.native && it.troubled);
        let stuck = stuck.map(|it| it.arrived).min().unwrap_or(u64::MAX);
        let mut waiting = self.people.iter().filter(waiting);
        let overtaken =
            waiting.find(|it| it.listens && !it.troubled && (it.native || it.arrived < stuck));
        match overtaken {
            Some(it) => Err(format!("{new} was granted the lock before {}", it.owner)),
            None => Ok(()),
        }
    }
}
