//! How long a large history takes.

use std::time::Instant;

use locktopus_history::{Checker, History, Outcome, Property, Record, WriteOutcome};

use super::lives::{Dice, Life, history, life, rules};

/// A fair lock and 64 workers, in a million events. Without releases, every grant overlaps every
/// later one.
fn lives(releases: bool) -> Vec<Life> {
    let mut dice = Dice(6);
    let mut lives = vec![rules(None, true)];
    let mut now = 1;
    for turn in 0..125_000_u64 {
        let (asked, got) = (now + dice.below(5), now + 40);
        let ends = got + dice.between(10, 30);
        let worker = u32::try_from(turn % 64).unwrap() + 1;
        let one = life(worker)
            .attempt(turn)
            .asks(asked)
            .queued(asked + 1)
            .gets(got, u64::MAX, turn + 1)
            .enters(got + 1)
            .writes(got + 2, got + 4, turn + 1, WriteOutcome::Accepted)
            .leaves(ends - 2);
        lives.push(if releases {
            one.releases(ends - 1, ends)
        } else {
            one
        });
        // Others request it as well, and give up.
        let other = life(worker).attempt((1 << 40) + turn).asks(asked);
        if turn % 10 == 0 || !releases {
            lives.push(other.fails(got, None));
        }
        now = ends;
    }
    lives
}

/// Prints how long everything takes; with optimisation it is a second or two:
/// `cargo test --release -p locktopus-history --test history -- --ignored --nocapture a_million`
#[test]
#[ignore = "prints times, which only mean something in release builds"]
fn a_million_events() {
    for releases in [true, false] {
        let made = history(lives(releases));
        let begun = Instant::now();
        let mut lines = Vec::new();
        for record in made.records() {
            serde_json::to_writer(&mut lines, record).unwrap();
            lines.push(b'\n');
        }
        let (events, mb) = (made.records().len(), lines.len() >> 20);
        println!("{events} events, {mb} MB, written in {:?}", begun.elapsed());
        assert!(events > 1_000_000);
        let begun = Instant::now();
        let mut records: Vec<Record> = lines
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        println!("read in {:?}", begun.elapsed());
        // As if each worker had a file.
        records.sort_by_key(|record| record.worker);
        let begun = Instant::now();
        let read = History::from_records(records);
        println!("merged in {:?}", begun.elapsed());
        let begun = Instant::now();
        let verdict = Checker::new().check(&read);
        println!("checked in {:?}\n{verdict}", begun.elapsed());
        assert!(verdict.passed(Property::FairOrder) && verdict.passed(Property::StaleWrites));
        let validity = verdict.judgement(Property::ValidityOverlap);
        assert_eq!(validity.outcome == Outcome::Passed, releases);
        let pairs = 125_000 * 124_999 / 2;
        assert_eq!(validity.violations, if releases { 0 } else { pairs });
    }
}
