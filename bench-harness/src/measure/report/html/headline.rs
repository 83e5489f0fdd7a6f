//! The tables at the start of the page.

use super::tables::Figure;
use crate::measure::derive::{Spread, Unit};
use crate::measure::opening::{HEADLINE_COLUMNS, Headline};
use crate::measure::report::format;

/// A headline as the page shows it.
pub(super) struct HeadlineTable {
    pub(super) title: String,
    pub(super) said: Vec<String>,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Line>,
}

/// One lock.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) ours: bool,
    pub(super) figures: Vec<Figure>,
}

impl From<Headline> for HeadlineTable {
    fn from(headline: Headline) -> Self {
        let rows = headline.rows.into_iter().map(|row| Line {
            name: row.name,
            ours: row.who.is_ours(),
            figures: row
                .figures
                .into_iter()
                .zip(HEADLINE_COLUMNS)
                .map(|(spread, (_, unit))| figure(spread, unit))
                .collect(),
        });
        Self {
            title: headline.title,
            said: headline.said,
            columns: HEADLINE_COLUMNS.map(|(name, _)| name).to_vec(),
            rows: rows.collect(),
        }
    }
}

/// With a unit, because the times of a table may differ a thousandfold.
fn figure(spread: Option<Spread>, unit: Unit) -> Figure {
    let text = |value: f64| match unit {
        Unit::Nanos => format::natural(value),
        Unit::Rtt | Unit::PerSecond | Unit::Plain => format::number(value),
    };
    let Some(spread) = spread else {
        return Figure {
            median: format::NONE.to_owned(),
            range: String::new(),
        };
    };
    Figure {
        median: text(spread.median),
        range: match spread.rounds {
            1 => "one round".to_owned(),
            _ => format!("{} to {}", text(spread.min), text(spread.max)),
        },
    }
}
