//! The state of the display, and the keys that change it.

use std::cmp::Reverse;

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Model, Row};

/// How many rows Page Up and Page Down move.
const PAGE: isize = 10;

/// A request by key that goes beyond the display.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    Quit,
    /// Break this lock. Typing a reason confirmed it.
    Break {
        name: String,
        /// Only if this owner holds it. `None` if it had several holders, or none.
        owner: Option<String>,
        reason: String,
    },
}

/// The order of the locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// What is wrong first, then most waiters first
    #[default]
    Problems,
    /// Most waiters first
    Waiters,
    /// Longest wait first
    Longest,
    /// Longest held first
    Held,
    /// Shortest rest of the lease first
    Lease,
    Name,
}

impl Order {
    /// The order this many places further on, with wrap-around.
    fn turned(self, by: usize) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|order| *order == self);
        all[(at.unwrap_or_default() + by) % all.len()]
    }
}

/// The dialog in front of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Front {
    #[default]
    Nothing,
    /// The details of one lock.
    Detail,
    /// The keys go to the filter.
    Filter,
    /// A prompt for the reason to break this lock, and what was typed so far.
    Reason {
        name: String,
        /// The only holder when the prompt opened, as [`Action::Break`] has it.
        owner: Option<String>,
        typed: String,
    },
}

/// The state of the display.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) colours: bool,
    pub(super) front: Front,
    pub(super) order: Order,
    pub(super) reversed: bool,
    /// Shows only locks with this text in their name, kind or holders.
    pub(super) filter: String,
    /// The selected name; rows move.
    pub(super) selected: Option<String>,
    pub(super) message: Option<String>,
}

impl View {
    /// The locks that pass the filter, as sorted on the screen.
    pub(super) fn ordered<'a>(&self, model: &'a Model) -> Vec<&'a Row> {
        let filter = self.filter.to_lowercase();
        let mut rows: Vec<_> = model.rows().filter(|row| shows(row, &filter)).collect();
        let waiters = |row: &&Row| Reverse(row.lock.waiters.len());
        match self.order {
            Order::Problems => rows.sort_by_key(|row| (Reverse(row.severity()), waiters(row))),
            Order::Waiters => rows.sort_by_key(waiters),
            Order::Longest => {
                rows.sort_by_key(|row| (row.wait.is_none(), row.wait.map(|wait| wait.at)));
            }
            Order::Held => rows.sort_by_key(|row| row.held.at),
            Order::Lease => rows.sort_by_key(|row| {
                let left = row.lock.holders.first().map(|holder| holder.remaining_ms);
                left.flatten().unwrap_or(u64::MAX)
            }),
            Order::Name => {}
        }
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    /// The row of the selected lock, else the first.
    pub(super) fn position(&self, rows: &[&Row]) -> Option<usize> {
        let selected = self.selected.as_deref();
        let found = rows
            .iter()
            .position(|row| Some(row.lock.name.as_str()) == selected);
        found.or_else(|| (!rows.is_empty()).then_some(0))
    }

    pub(super) fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    pub(super) fn press(&mut self, key: KeyEvent, model: &Model) -> Action {
        let interrupt =
            key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if interrupt {
            return Action::Quit;
        }
        self.message = None;
        match &mut self.front {
            Front::Reason { name, owner, typed } => {
                if key.code == KeyCode::Enter && !typed.trim().is_empty() {
                    let action = Action::Break {
                        name: std::mem::take(name),
                        owner: owner.take(),
                        reason: std::mem::take(typed),
                    };
                    self.front = Front::Nothing;
                    return action;
                }
                match key.code {
                    KeyCode::Esc => self.front = Front::Nothing,
                    code => type_into(typed, code),
                }
                Action::None
            }
            Front::Filter => {
                match key.code {
                    KeyCode::Esc => (self.filter, self.front) = (String::new(), Front::Nothing),
                    KeyCode::Enter => self.front = Front::Nothing,
                    code => type_into(&mut self.filter, code),
                }
                Action::None
            }
            Front::Nothing | Front::Detail => self.press_on_list(key.code, model),
        }
    }

    fn press_on_list(&mut self, code: KeyCode, model: &Model) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.front == Front::Detail => self.front = Front::Nothing,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.step(model, -1),
            KeyCode::Down | KeyCode::Char('j') => self.step(model, 1),
            KeyCode::PageUp => self.step(model, -PAGE),
            KeyCode::PageDown => self.step(model, PAGE),
            KeyCode::Home => self.step(model, isize::MIN),
            KeyCode::End => self.step(model, isize::MAX),
            KeyCode::Enter => {
                self.front = if self.front == Front::Detail {
                    Front::Nothing
                } else {
                    Front::Detail
                }
            }
            KeyCode::Char('s') => self.order = self.order.turned(1),
            KeyCode::Char('S') => {
                self.order = self.order.turned(Order::value_variants().len() - 1);
            }
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('/') => self.front = Front::Filter,
            KeyCode::Char('b') => {
                let rows = self.ordered(model);
                if let Some(at) = self.position(&rows) {
                    let lock = &rows[at].lock;
                    self.front = Front::Reason {
                        name: lock.name.clone(),
                        owner: lock.only_owner().map(str::to_owned),
                        typed: String::new(),
                    };
                }
            }
            _ => {}
        }
        Action::None
    }

    fn step(&mut self, model: &Model, by: isize) {
        let rows = self.ordered(model);
        if let Some(at) = self.position(&rows) {
            let last = rows.len() - 1;
            let next = at.saturating_add_signed(by).min(last);
            self.selected = Some(rows[next].lock.name.clone());
        }
    }
}

fn type_into(text: &mut String, code: KeyCode) {
    match code {
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(typed) => text.push(typed),
        _ => {}
    }
}

fn shows(row: &Row, filter: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(filter);
    let mut holders = row.lock.holders.iter();
    has(&row.lock.name) || has(row.lock.kind) || holders.any(|holder| has(&holder.named()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::model::tests::{held, model};
    use super::*;

    fn two_locks() -> Model {
        let mut model = model();
        model.update(
            Instant::now(),
            vec![held("a", "one", 0), held("b", "two", 3)],
        );
        model
    }

    fn press(view: &mut View, model: &Model, keys: &[KeyCode]) -> Action {
        let mut action = Action::None;
        for key in keys {
            action = view.press(KeyEvent::new(*key, KeyModifiers::NONE), model);
        }
        action
    }

    #[test]
    fn a_lock_is_only_broken_for_a_reason() {
        let (model, mut view) = (two_locks(), View::default());
        let keys = [KeyCode::Char('b'), KeyCode::Enter, KeyCode::Char('q')];
        assert_eq!(
            press(&mut view, &model, &keys),
            Action::None,
            "q is a part of the reason"
        );
        let action = press(&mut view, &model, &[KeyCode::Char('!'), KeyCode::Enter]);
        let breaking = Action::Break {
            name: "b".to_owned(),
            owner: model.get("b").unwrap().lock.only_owner().map(str::to_owned),
            reason: "q!".to_owned(),
        };
        assert_eq!(action, breaking, "most wait for b");
        assert_eq!(view.front, Front::Nothing);
        press(
            &mut view,
            &model,
            &[KeyCode::Char('b'), KeyCode::Char('x'), KeyCode::Esc],
        );
        assert_eq!(press(&mut view, &model, &[KeyCode::Enter]), Action::None);
        assert_eq!(view.front, Front::Detail);
    }

    #[test]
    fn who_took_the_lock_since_the_prompt_opened_keeps_it() {
        let (mut model, mut view) = (two_locks(), View::default());
        press(&mut view, &model, &[KeyCode::Char('b')]);
        model.update(Instant::now(), vec![held("b", "another", 3)]);
        let action = press(&mut view, &model, &[KeyCode::Char('x'), KeyCode::Enter]);
        let Action::Break { name, owner, .. } = action else {
            panic!("{action:?}")
        };
        assert_eq!((name.as_str(), owner.as_deref()), ("b", Some("two")));
    }

    #[test]
    fn locks_are_filtered_and_sorted() {
        let (mut model, mut view) = (model(), View::default());
        let mut endless = held("endless", "one", 0);
        endless.holders[0].remaining_ms = None;
        let start = Instant::now();
        model.update(
            start,
            vec![held("b", "two", 3), held("crowd", "three", 4), endless],
        );
        let later = start + std::time::Duration::from_secs(1);
        let found = vec![
            held("b", "two", 3),
            held("crowd", "three", 5),
            held("endless", "one", 0),
        ];
        let names = |view: &View, model: &Model| -> String {
            let rows = view.ordered(model).into_iter();
            rows.map(|row| row.lock.name.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            names(&view, &model),
            "endless crowd b",
            "what is wrong comes first"
        );
        model.update(later, found);
        assert_eq!(names(&view, &model), "crowd b endless");
        press(&mut view, &model, &[KeyCode::Char('S')]);
        assert_eq!(
            (view.order, &*names(&view, &model)),
            (Order::Name, "b crowd endless")
        );
        press(&mut view, &model, &[KeyCode::Char('r')]);
        assert_eq!(names(&view, &model), "endless crowd b");
        for order in Order::value_variants() {
            press(&mut view, &model, &[KeyCode::Char('s')]);
            assert_eq!(view.order, *order);
        }
        let keys = ['/', 'T', 'h', 'r', 'x'].map(KeyCode::Char);
        press(
            &mut view,
            &model,
            &[&keys[..], &[KeyCode::Backspace, KeyCode::Enter]].concat(),
        );
        assert_eq!(names(&view, &model), "crowd", "its holder is three");
        assert_eq!(press(&mut view, &model, &[KeyCode::Esc]), Action::None);
        assert_eq!(names(&view, &model), "endless crowd b");
        assert_eq!(press(&mut view, &model, &[KeyCode::Esc]), Action::Quit);
    }

    #[test]
    fn the_selection_stays_with_its_lock() {
        let (mut model, mut view) = (two_locks(), View::default());
        press(&mut view, &model, &[KeyCode::Down]);
        assert_eq!(view.selected.as_deref(), Some("a"));
        model.update(
            Instant::now(),
            vec![held("a", "one", 9), held("b", "two", 3)],
        );
        assert_eq!(view.position(&view.ordered(&model)), Some(0));
        model.update(Instant::now(), vec![]);
        assert_eq!(view.position(&view.ordered(&model)), None);
        assert_eq!(
            press(&mut view, &model, &[KeyCode::Char('b')]),
            Action::None
        );
        assert_eq!(view.front, Front::Nothing);
    }
}
