//! One section of the page per group of comparable cells.

use super::charts::{Figure, dots, fairness, percentiles, scaling, timeline};
use super::svg;
use super::tables::{self, CellLine, Column, LatencyLine};
use crate::derive::{self, Group, groups};
use crate::model::{HistogramError, Report, op};

/// An entry of a legend.
pub(super) struct Key {
    pub(super) slot: usize,
    pub(super) class: String,
    pub(super) name: String,
}

/// Charts of one kind under a heading.
pub(super) struct Block {
    pub(super) title: String,
    pub(super) caption: &'static str,
    pub(super) figures: Vec<Figure>,
    /// Shown folded: further operations.
    pub(super) folded: bool,
}

/// One section.
pub(super) struct Section {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) waits: &'static str,
    pub(super) waits_note: &'static str,
    pub(super) constants: Vec<(String, String)>,
    pub(super) keys: Vec<Key>,
    pub(super) blocks: Vec<Block>,
    pub(super) has_load: bool,
    pub(super) columns: Vec<Column>,
    pub(super) cells: Vec<CellLine>,
    pub(super) latencies: Vec<LatencyLine>,
}

/// The sections of `report`. A series keeps its colour through the page where it can.
pub(super) fn sections(report: &Report) -> Result<Vec<Section>, HistogramError> {
    let mut known: Vec<(String, usize)> = Vec::new();
    let groups = groups(report);
    groups
        .iter()
        .enumerate()
        .map(|(at, group)| section(at, group, &mut known))
        .collect()
}

fn section(
    at: usize,
    group: &Group<'_>,
    known: &mut Vec<(String, usize)>,
) -> Result<Section, HistogramError> {
    let keys = keys(group, known);
    let slot_of = |name: &str| {
        keys.iter()
            .find(|key| key.name == name)
            .map_or(0, |key| key.slot)
    };
    let slots: Vec<usize> = group.rows.iter().map(|row| slot_of(&row.series)).collect();
    let columns = tables::columns(group);
    Ok(Section {
        id: format!("section-{at}"),
        title: group.title(),
        waits: if group.corrected {
            "open loop"
        } else {
            "closed loop"
        },
        waits_note: if group.corrected {
            "Requests arrive on a schedule and are timed from their due time: coordinated omission is corrected."
        } else {
            "Workers ask again when they are done: waits are understated, because nobody arrives during a stall."
        },
        constants: group
            .constants
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .cloned()
            .collect(),
        blocks: blocks(group, &slots)?,
        keys,
        has_load: group.rows.iter().any(|row| !row.load.is_empty()),
        cells: tables::cells(group, &slots, &columns),
        columns,
        latencies: tables::latencies(group, &slots),
    })
}

fn blocks(group: &Group<'_>, slots: &[usize]) -> Result<Vec<Block>, HistogramError> {
    let operations = operations(group);
    let mut blocks = Vec::new();
    for (n, operation) in operations.iter().enumerate() {
        let mut figures = dots::figures(group, operation, slots);
        figures.extend(percentiles::figures(group, operation, slots)?);
        let caption = "Filled marks and thick lines: median over rounds of the p50, and all rounds \
                       merged. Hollow marks: p99. Bars and pale lines: the single rounds.";
        blocks.push(Block {
            title: format!("Latency: {operation}"),
            caption,
            figures,
            folded: n > 0,
        });
    }
    if let Some(first) = operations.first() {
        blocks.insert(
            1,
            Block {
                title: "Scaling".to_owned(),
                caption: "Medians over rounds against the number of workers.",
                figures: scaling::figures(group, first, slots),
                folded: false,
            },
        );
    }
    let at = blocks.len().min(2);
    blocks.insert(
        at,
        Block {
            title: "Fairness".to_owned(),
            caption: "One dot per worker: its grants over the fair share, all rounds together. \
                      The axis is a square root.",
            figures: fairness::figures(group, slots),
            folded: false,
        },
    );
    let timelines = timeline::figures(group, slots);
    if timelines.len() == 1 {
        // A single chart fills the place beside the single percentile chart.
        blocks[0].figures.extend(timelines);
    } else {
        let caption = "The round of median throughput of each cell. A gap means nothing was \
                       granted.";
        let title = "Over time".to_owned();
        blocks.insert(
            at + 1,
            Block {
                title,
                caption,
                figures: timelines,
                folded: false,
            },
        );
    }
    blocks.retain(|block| !block.figures.is_empty());
    Ok(blocks)
}

/// Operations of the whole group, most telling first.
fn operations<'a>(group: &Group<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = group
        .rows
        .iter()
        .flat_map(|row| derive::operations(row.cell))
        .collect();
    names.sort_by_key(|name| op::rank(name));
    names.dedup();
    names
}

/// Known series keep their slot; new ones take the first that is free in this group.
fn keys(group: &Group<'_>, known: &mut Vec<(String, usize)>) -> Vec<Key> {
    let names = group.series();
    let slot_known = |known: &[(String, usize)], name: &str| {
        known
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, slot)| *slot)
    };
    let mut taken: Vec<usize> = names
        .iter()
        .filter_map(|name| slot_known(known, name))
        .collect();
    let mut keys = Vec::new();
    for name in names {
        let slot = slot_known(known, name).unwrap_or_else(|| {
            let free = (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
            taken.push(free);
            known.push((name.to_owned(), free));
            free
        });
        keys.push(Key {
            slot,
            class: svg::class(slot),
            name: name.to_owned(),
        });
    }
    keys
}
