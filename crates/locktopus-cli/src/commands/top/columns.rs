//! Chooses the columns that fit on the screen. NAME always stays.

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    Kind,
    Holder,
    Held,
    Lease,
    Waiting,
    /// The longest wait.
    Longest,
    Token,
}

use Column::{Held, Holder, Kind, Lease, Longest, Name, Token, Waiting};

/// All columns from left to right.
const ALL: [Column; 8] = [Name, Kind, Holder, Held, Lease, Waiting, Longest, Token];

/// The columns to leave out on narrow screens, least important first.
const DISPENSABLE: [Column; 6] = [Token, Kind, Waiting, Held, Longest, Lease];

/// Extra width of the kind and holder columns on wide screens.
const ROOM_FOR_KIND: u16 = 7;
const ROOM_FOR_HOLDER: u16 = 10;

impl Column {
    pub(super) fn heading(self) -> &'static str {
        match self {
            Name => "NAME",
            Kind => "KIND",
            Holder => "HOLDER",
            Held => "HELD",
            Lease => "LEASE",
            Waiting => "WAITING",
            Longest => "LONGEST",
            Token => "TOKENS TO",
        }
    }

    /// Minimum width.
    fn least(self) -> u16 {
        match self {
            Name => 20,
            Holder => 14,
            Kind => 9,
            Held | Lease | Longest => 8,
            Waiting => 7,
            Token => 16,
        }
    }
}

/// The columns for a screen of this width, with the width of each.
pub(super) fn columns(width: u16) -> Vec<(Column, u16)> {
    let needed = |columns: &[Column]| {
        let gaps = u16::try_from(columns.len().saturating_sub(1)).unwrap_or(u16::MAX);
        columns.iter().map(|column| column.least()).sum::<u16>() + gaps
    };
    let mut shown = ALL.to_vec();
    for column in DISPENSABLE {
        if needed(&shown) > width {
            shown.retain(|other| *other != column);
        }
    }
    let room = width.saturating_sub(needed(&shown));
    let for_holder = room.min(ROOM_FOR_HOLDER);
    let room = room - for_holder;
    let for_kind = match shown.contains(&Kind) {
        true => room.min(ROOM_FOR_KIND),
        false => 0,
    };
    let wide = |column: Column| match column {
        Name => column.least() + room - for_kind,
        Kind => column.least() + for_kind,
        Holder => column.least() + for_holder,
        _ => column.least(),
    };
    shown
        .into_iter()
        .map(|column| (column, wide(column)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_keeps_its_place() {
        for width in 0..300 {
            let shown = columns(width);
            assert_eq!(shown[0].0, Name, "{width}");
            assert!(shown[0].1 >= 20, "{width}: {shown:?}");
            let gaps = u16::try_from(shown.len()).unwrap() - 1;
            let whole = shown.iter().map(|(_, wide)| wide).sum::<u16>() + gaps;
            assert_eq!(whole, width.max(35), "{shown:?}");
        }
    }

    #[test]
    fn a_usual_terminal_shows_all_but_the_token() {
        let shown: Vec<_> = columns(80).into_iter().map(|(column, _)| column).collect();
        assert_eq!(shown, [Name, Kind, Holder, Held, Lease, Waiting, Longest]);
        assert_eq!(columns(97).len(), 8);
    }
}
