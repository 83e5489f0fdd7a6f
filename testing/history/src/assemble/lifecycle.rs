//! Which events may follow which in the life of an attempt.

use std::collections::HashSet;

use crate::attempt::{Answer, Attempt, Held};
use crate::event::Event;
use crate::malformed::Malformed;

impl Attempt {
    pub(super) fn apply(&mut self, at: u64, event: &Event) -> Result<(), Malformed> {
        match event {
            Event::Enqueued { by, .. } => {
                self.expect_pending(event)?;
                // An arrival before the attempt was sent would prove an order that no one saw.
                self.enqueued = Some((*by).max(self.started));
                Ok(())
            }
            Event::Granted { grant, .. } => {
                self.expect_pending(event)?;
                self.answer = Answer::Granted(Box::new(Held::new(at, grant.clone())));
                Ok(())
            }
            Event::Failed { waited_until, .. } => {
                self.expect_pending(event)?;
                self.answer = Answer::Failed {
                    at,
                    // A failed attempt does not wait any longer.
                    waited_until: waited_until.map(|until| until.min(at)),
                };
                Ok(())
            }
            _ => self.apply_to_grant(at, event),
        }
    }

    fn apply_to_grant(&mut self, at: u64, event: &Event) -> Result<(), Malformed> {
        let attempt = self.id;
        let Some(held) = self.held_mut() else {
            return Err(Malformed::NotGranted {
                attempt,
                event: event.what(),
            });
        };
        held.touched = at;
        match event {
            Event::UseStarted { .. } => {
                if matches!(held.uses.last(), Some((_, None))) {
                    return Err(Malformed::UseDuringUse { attempt });
                }
                held.uses.push((at, None));
            }
            Event::UseEnded { .. } => match held.uses.last_mut() {
                Some((_, end @ None)) => *end = Some(at),
                Some(_) | None => return Err(Malformed::UseNotStarted { attempt }),
            },
            Event::Wrote { write, .. } => {
                if write.issued > at {
                    return Err(Malformed::WriteBeforeIssue {
                        attempt,
                        resource: write.resource.clone(),
                    });
                }
                held.writes.push((at, write.clone()));
            }
            Event::Extended { valid_until, .. } => held.extended(at, *valid_until),
            Event::Observed { valid_until, .. } => held.observed(at, *valid_until),
            Event::Lost { valid_until, .. } => held.lost(at, *valid_until),
            _ => return self.apply_release(at, event),
        }
        Ok(())
    }

    fn apply_release(&mut self, at: u64, event: &Event) -> Result<(), Malformed> {
        let attempt = self.id;
        let Some(held) = self.held_mut() else {
            return Ok(());
        };
        let what = event.what();
        match event {
            Event::ReleaseStarted { .. } if held.release_started.is_some() => {
                Err(Malformed::ReleasedTwice {
                    attempt,
                    event: what,
                })
            }
            Event::ReleaseStarted { .. } => {
                held.release_started(at);
                Ok(())
            }
            Event::ReleaseEnded { .. } if held.release_started.is_none() => {
                Err(Malformed::ReleaseNotStarted { attempt })
            }
            Event::ReleaseEnded { .. } if held.release_ended.is_some() => {
                Err(Malformed::ReleasedTwice {
                    attempt,
                    event: what,
                })
            }
            Event::ReleaseEnded { .. } => {
                held.release_ended = Some(at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn expect_pending(&self, event: &Event) -> Result<(), Malformed> {
        match self.answer {
            Answer::Pending => Ok(()),
            Answer::Failed { .. } | Answer::Granted(_) => Err(Malformed::AnsweredBefore {
                attempt: self.id,
                event: event.what(),
            }),
        }
    }

    /// What is unfinished although the worker says it has finished.
    pub(super) fn unfinished(&self) -> Option<Malformed> {
        let what = match &self.answer {
            Answer::Pending => "the attempt",
            Answer::Granted(held) if matches!(held.uses.last(), Some((_, None))) => "a use",
            Answer::Granted(held)
                if held.release_started.is_some() && held.release_ended.is_none() =>
            {
                "its release"
            }
            Answer::Failed { .. } | Answer::Granted(_) => return None,
        };
        Some(Malformed::NeverEnded {
            attempt: self.id,
            what,
        })
    }

    /// Sequence numbers of resources that other writes have as well.
    pub(super) fn repeated_orders(&self, seen: &mut HashSet<(String, u64)>) -> Vec<Malformed> {
        let writes = self.held().map_or(&[][..], |held| &held.writes);
        let mut found = Vec::new();
        for (_, write) in writes {
            if let Some(order) = write.order
                && !seen.insert((write.resource.clone(), order))
            {
                found.push(Malformed::OrderTwice {
                    resource: write.resource.clone(),
                    order,
                    attempt: self.id,
                });
            }
        }
        found
    }
}
