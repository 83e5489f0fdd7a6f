//! Commands on sorted sets, by rank and by score.

use std::ops::Range;

use crate::redis::lists::bounds;
use crate::redis::numbers::{float, general, integer_or_error};
use crate::redis::reply::{Outcome, Refusal, Reply, SYNTAX};
use crate::redis::server::Server;
use crate::redis::sorted::members;
use crate::redis::value::Bytes;

const BAD_BOUND: &str = "ERR min or max is not a float";

/// An interval of scores. Each end may be open.
#[derive(Debug, Clone, Copy)]
struct Scores {
    min: (f64, bool),
    max: (f64, bool),
}

impl Scores {
    fn parse(min: &[u8], max: &[u8]) -> Result<Self, Refusal> {
        let bound = |text: &[u8]| {
            let (text, open) = match text.strip_prefix(b"(") {
                Some(rest) => (rest, true),
                None => (text, false),
            };
            // An empty text counts as zero here, as in C's `strtod`.
            let number = if text.is_empty() {
                Some(0.0)
            } else {
                float(text)
            };
            number
                .map(|number| (number, open))
                .ok_or_else(|| Refusal::from(BAD_BOUND))
        };
        Ok(Self {
            min: bound(min)?,
            max: bound(max)?,
        })
    }

    /// The places with scores in the interval.
    fn places(&self, members: &[(f64, Bytes)]) -> Range<usize> {
        let (min, min_open) = self.min;
        let (max, max_open) = self.max;
        let start = members.partition_point(|(score, _)| {
            if min_open {
                *score <= min
            } else {
                *score < min
            }
        });
        let end = members.partition_point(|(score, _)| {
            if max_open {
                *score < max
            } else {
                *score <= max
            }
        });
        start..end.max(start)
    }
}

pub(super) fn count(server: &mut Server, words: &[Bytes]) -> Outcome {
    let scores = Scores::parse(&words[2], &words[3])?;
    Ok(Reply::count(
        scores.places(members(server, &words[1])?).len(),
    ))
}

/// The form of a range query and of its reply.
#[derive(Default)]
struct Shape {
    by_score: bool,
    reversed: bool,
    with_scores: bool,
    /// Offset and count; a negative count means all.
    limit: Option<(i64, i64)>,
}

impl Shape {
    fn parse(mut self, words: &[Bytes], full: bool) -> Result<Self, Refusal> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"WITHSCORES" => self.with_scores = true,
                b"LIMIT" => {
                    let (Some(offset), Some(count)) = (words.next(), words.next()) else {
                        return Err(SYNTAX.into());
                    };
                    self.limit = Some((integer_or_error(offset)?, integer_or_error(count)?));
                }
                b"REV" if full && !self.reversed => self.reversed = true,
                b"BYSCORE" if full && !self.by_score => self.by_score = true,
                b"BYLEX" if full => {
                    return Err(Refusal::Unsupported("ZRANGE with BYLEX".to_owned()));
                }
                _ => return Err(SYNTAX.into()),
            }
        }
        if !self.by_score {
            if self.limit.is_none_or(|(_, count)| count == -1) {
                self.limit = None;
                return Ok(self);
            }
            let only = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(only.into());
        }
        Ok(self)
    }

    fn show(&self, mut found: Vec<&(f64, Bytes)>) -> Reply {
        if let Some((offset, count)) = self.limit {
            let offset = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(found.len());
            found.drain(..offset);
            found.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let mut shown = Vec::new();
        for (score, member) in found {
            shown.push(Reply::bulk(member.clone()));
            if self.with_scores {
                shown.push(Reply::bulk(general(*score)));
            }
        }
        Reply::Array(shown)
    }
}

pub(super) fn range(server: &mut Server, words: &[Bytes]) -> Outcome {
    let shape = Shape::default().parse(&words[4..], true)?;
    select(server, words, &shape)
}

pub(super) fn reversed(server: &mut Server, words: &[Bytes]) -> Outcome {
    let shape = Shape {
        reversed: true,
        ..Shape::default()
    }
    .parse(&words[4..], false)?;
    select(server, words, &shape)
}

pub(super) fn by_score(server: &mut Server, words: &[Bytes]) -> Outcome {
    let shape = Shape {
        by_score: true,
        ..Shape::default()
    }
    .parse(&words[4..], false)?;
    select(server, words, &shape)
}

pub(super) fn by_score_reversed(server: &mut Server, words: &[Bytes]) -> Outcome {
    let shape = Shape {
        by_score: true,
        reversed: true,
        ..Shape::default()
    };
    let shape = shape.parse(&words[4..], false)?;
    select(server, words, &shape)
}

fn select(server: &mut Server, words: &[Bytes], shape: &Shape) -> Outcome {
    let mut found: Vec<&(f64, Bytes)>;
    if shape.by_score {
        let (min, max) = if shape.reversed {
            (&words[3], &words[2])
        } else {
            (&words[2], &words[3])
        };
        let scores = Scores::parse(min, max)?;
        let members = members(server, &words[1])?;
        found = members[scores.places(members)].iter().collect();
        if shape.reversed {
            found.reverse();
        }
    } else {
        let (start, stop) = (integer_or_error(&words[2])?, integer_or_error(&words[3])?);
        let members = members(server, &words[1])?;
        found = members.iter().collect();
        if shape.reversed {
            found.reverse();
        }
        found = found[bounds(start, stop, found.len())].to_vec();
    }
    Ok(shape.show(found))
}

pub(super) fn remove_by_score(server: &mut Server, words: &[Bytes]) -> Outcome {
    let scores = Scores::parse(&words[2], &words[3])?;
    let places = scores.places(members(server, &words[1])?);
    remove_places(server, &words[1], places)
}

pub(super) fn remove_by_rank(server: &mut Server, words: &[Bytes]) -> Outcome {
    let (start, stop) = (integer_or_error(&words[2])?, integer_or_error(&words[3])?);
    let places = bounds(start, stop, members(server, &words[1])?.len());
    remove_places(server, &words[1], places)
}

fn remove_places(server: &mut Server, key: &[u8], places: Range<usize>) -> Outcome {
    let removed = places.len();
    if removed > 0 {
        let now = server.expiry_now();
        server.keys.sorted_mut(key, now)?.drain(places);
        server.keys.drop_if_empty(key);
    }
    Ok(Reply::count(removed))
}
