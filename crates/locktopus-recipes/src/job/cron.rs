//! Times of a cron expression, in a time zone.

use std::time::{Duration, SystemTime};

use croner::Direction;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use locktopus_core::OptionError;

use super::catch_up::CatchUp;

/// The times that a cron expression names.
pub(super) struct CronTimes {
    /// First those that may have to be caught up.
    pub(super) times: Box<dyn Iterator<Item = SystemTime> + Send>,
    /// The longest time between two of the next ones.
    pub(super) longest_gap: Duration,
}

/// How many times to look ahead for the longest gap: a week of working days, and the weekend.
const GAPS_AHEAD: usize = 8;

/// The fields of an expression, and their numbers.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of the week", "0 to 7, or SUN to SAT"),
];

/// The first field that cannot be read even alone, and what may stand there.
fn wrong_field(expression: &str, parser: &CronParser) -> Option<String> {
    let fields = expression.split_whitespace().zip(FIELDS).enumerate();
    let mut wrong = fields.filter(|(place, (field, _))| {
        let mut alone = ["*"; 5];
        alone[*place] = field;
        parser.parse(&alone.join(" ")).is_err()
    });
    let (_, (field, (name, numbers))) = wrong.next()?;
    Some(format!(
        "the {name} {field:?} cannot be read: it takes {numbers}, with lists, ranges and steps"
    ))
}

/// Reads an expression. The times begin `back` before `now`.
pub(super) fn read(
    expression: &str,
    zone: &str,
    now: SystemTime,
    back: Duration,
) -> Result<CronTimes, OptionError> {
    let unreadable =
        |error: &dyn std::fmt::Display| OptionError::new("cron", expression, error.to_string());
    // As in crontab. A star too many would otherwise mean every second.
    let is_nickname = expression.trim_start().starts_with('@');
    if !is_nickname && expression.split_whitespace().count() != 5 {
        let rule = "must have five fields (minute, hour, day of the month, month, day of the week), \
                    or be a nickname such as @daily";
        return Err(OptionError::new("cron", expression, rule));
    }
    let parser = CronParser::builder();
    let parser = parser.seconds(Seconds::Disallowed).year(Year::Disallowed);
    let parser = parser.build();
    let cron = parser.parse(expression).map_err(|error| {
        let field = wrong_field(expression, &parser).filter(|_| !is_nickname);
        unreadable(&field.unwrap_or_else(|| error.to_string()))
    })?;
    let tz = TimeZone::get(zone).map_err(|_| {
        let rule = "must be a time zone of the IANA database, such as UTC or Europe/Berlin";
        OptionError::new("zone", zone, rule)
    })?;
    let now = Timestamp::try_from(now).map_err(|error| unreadable(&error))?;
    let now = now.to_zoned(tz);
    let ahead = cron.iter_from(now.clone(), Direction::Forward);
    let next: Vec<Zoned> = ahead.clone().take(GAPS_AHEAD).collect();
    if next.is_empty() {
        return Err(unreadable(&"it names no time that ever comes"));
    }
    let gaps = next.windows(2).map(|pair| match pair {
        [one, next] => one.duration_until(next).unsigned_abs(),
        _ => Duration::ZERO,
    });
    let longest_gap = gaps.max().unwrap_or_default();
    let back = back.max(longest_gap);
    let recent = |time: &Zoned| time.duration_until(&now).unsigned_abs() <= back;
    let past = cron.iter_before(now.clone()).take(CatchUp::MOST);
    let mut past: Vec<Zoned> = past.take_while(recent).collect();
    past.reverse();
    let times = past.into_iter().chain(ahead);
    Ok(CronTimes {
        times: Box::new(times.map(|time| SystemTime::from(time.timestamp()))),
        longest_gap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first times after this one, in that zone, as they are in UTC.
    fn after(now: &str, expression: &str, zone: &str) -> Vec<String> {
        let now: Timestamp = now.parse().unwrap();
        let read = read(expression, zone, now.into(), Duration::ZERO).unwrap();
        let ahead = read.times.map(|time| Timestamp::try_from(time).unwrap());
        let ahead = ahead.filter(|time| *time > now).take(3);
        ahead.map(|time| time.to_string()).collect()
    }

    #[test]
    fn an_expression_is_read_in_its_zone() {
        assert_eq!(
            after("2026-11-27T00:00:00Z", "0 3 * * MON-FRI", "Europe/Berlin"),
            [
                "2026-11-27T02:00:00Z",
                "2026-11-30T02:00:00Z",
                "2026-12-01T02:00:00Z"
            ]
        );
        assert_eq!(
            after("2026-11-27T00:00:00Z", "*/20 * * * *", "UTC"),
            [
                "2026-11-27T00:20:00Z",
                "2026-11-27T00:40:00Z",
                "2026-11-27T01:00:00Z"
            ]
        );
    }

    /// In Berlin 02:30 does not exist on 2027-03-28. It exists twice on 2026-10-25.
    #[test]
    fn a_fixed_time_comes_once_a_day_where_the_clock_changes() {
        assert_eq!(
            after("2027-03-27T12:00:00Z", "30 2 * * *", "Europe/Berlin"),
            [
                "2027-03-28T01:00:00Z",
                "2027-03-29T00:30:00Z",
                "2027-03-30T00:30:00Z"
            ]
        );
        assert_eq!(
            after("2026-10-24T12:00:00Z", "30 2 * * *", "Europe/Berlin"),
            [
                "2026-10-25T00:30:00Z",
                "2026-10-26T01:30:00Z",
                "2026-10-27T01:30:00Z"
            ]
        );
    }

    #[test]
    fn an_interval_goes_on_where_the_clock_changes() {
        assert_eq!(
            after("2026-10-25T00:00:00Z", "*/30 * * * *", "Europe/Berlin"),
            [
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T01:30:00Z"
            ]
        );
        assert_eq!(
            after("2027-03-28T00:30:00Z", "*/30 * * * *", "Europe/Berlin"),
            [
                "2027-03-28T01:00:00Z",
                "2027-03-28T01:30:00Z",
                "2027-03-28T02:00:00Z"
            ]
        );
    }

    #[test]
    fn times_begin_with_those_that_may_have_been_missed() {
        let now: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
        let days = |count: u64| Duration::from_secs(count * 24 * 60 * 60);
        for (expression, past, gap) in [
            ("0 0 * * *", 8, days(1)),
            ("0 0 * * MON-FRI", 6, days(3)),
            ("0 0 1 * *", 1, days(31)),
            ("@daily", 8, days(1)),
            ("@monthly", 1, days(31)),
            ("* * * * *", CatchUp::MOST + 1, Duration::from_secs(60)),
        ] {
            let read = read(expression, "UTC", now.into(), days(8)).unwrap();
            let begun = read.times.take_while(|time| *time <= now.into()).count();
            assert_eq!((begun, read.longest_gap), (past, gap), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let now = SystemTime::now();
        for (expression, zone, said) in [
            ("", "UTC", "cron = \"\""),
            ("0 3 * *", "UTC", "must have five fields"),
            ("* * * * * *", "UTC", "must have five fields"),
            ("@dayly", "UTC", "cron = \"@dayly\""),
            ("@daily 3", "UTC", "cron = \"@daily 3\""),
            ("@reboot", "UTC", "cron = \"@reboot\""),
            (
                "61 * * * *",
                "UTC",
                "the minute \"61\" cannot be read: it takes 0 to 59",
            ),
            ("0 25 * * *", "UTC", "the hour \"25\""),
            ("0 3 0 * *", "UTC", "the day of the month \"0\""),
            ("0 3 * JUNE *", "UTC", "the month \"JUNE\""),
            ("0 3 * * MON-FRY", "UTC", "the day of the week \"MON-FRY\""),
            ("0 0 30 2 *", "UTC", "no time that ever comes"),
            ("0 3 * * *", "Berlin", "zone = \"Berlin\""),
            ("0 3 * * *", "", "zone = \"\""),
        ] {
            let error = read(expression, zone, now, Duration::ZERO)
                .err()
                .expect(expression);
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
