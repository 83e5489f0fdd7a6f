//! One section of the page per group of comparable cells.

use super::charts::{Figure, dots, percentiles, scaling};
use super::tables::{self, CellLine, Column, LatencyLine};
use crate::measure::derive::{self, Group, groups};
use crate::measure::model::{HistogramError, Report, op};
use crate::shared::render::svg;

/// An entry of a legend.
pub(super) struct Key {
    pub(super) slot: usize,
    pub(super) class: String,
    pub(super) name: String,
}

/// Charts of one kind under a heading.
pub(super) struct Block {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) figures: Vec<Figure>,
    /// Folded when the page opens: further operations.
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
            "Requests arrive on a schedule and are timed from their due time, so a stall counts for every request it delays."
        } else {
            "Workers ask again when they are done. Waits look shorter than on a schedule: no requests arrive during a stall."
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

/// The most important first; further operations are folded away below.
fn blocks(group: &Group<'_>, slots: &[usize]) -> Result<Vec<Block>, HistogramError> {
    let block = |title: String, caption: &str, figures| Block {
        title,
        caption: caption.to_owned(),
        figures,
        folded: false,
    };
    let latency = |operation: &str| -> Result<Block, HistogramError> {
        let mut figures = dots::figures(group, operation, slots);
        figures.extend(percentiles::figures(group, operation, slots)?);
        let caption = format!(
            "{} Filled marks: p50; hollow marks: p99; bars: the range of the rounds. \
             Thick lines: all rounds together; pale lines: single rounds.",
            op::meaning(operation)
        );
        Ok(block(format!("Latency: {operation}"), &caption, figures))
    };
    let operations = operations(group);
    let mut blocks = Vec::new();
    if let Some(first) = operations.first() {
        blocks.push(latency(first)?);
        blocks.push(block(
            "Scaling".to_owned(),
            "Medians over rounds against the number of workers.",
            scaling::figures(group, first, slots),
        ));
    }
    for operation in operations.iter().skip(1) {
        blocks.push(Block {
            folded: true,
            ..latency(operation)?
        });
    }
    blocks.retain(|block| !block.figures.is_empty());
    Ok(blocks)
}

/// Operations of the whole group, most important first.
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
