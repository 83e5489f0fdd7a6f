//! The state of the display, and the keys that change it.

use std::cmp::Reverse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Model, Row};

/// A request by key that goes beyond the display.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    Quit,
    /// Break this lock. Typing a reason confirmed it.
    Break {
        name: String,
        reason: String,
    },
}

/// The order of the locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Most waiters first.
    #[default]
    Waiters,
    /// Longest held first.
    Age,
    Name,
}

impl Order {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Waiters => "waiters",
            Self::Age => "age",
            Self::Name => "name",
        }
    }
}

/// The dialog in front of the list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Front {
    #[default]
    Nothing,
    /// The details of one lock.
    Detail,
    /// A prompt for the reason to break this lock, and what was typed so far.
    Reason { name: String, typed: String },
}

/// The state of the display.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) front: Front,
    pub(super) order: Order,
    /// The selected name; rows move.
    pub(super) selected: Option<String>,
    pub(super) message: Option<String>,
}

impl View {
    /// The locks as sorted on the screen.
    pub(super) fn ordered<'a>(&self, model: &'a Model) -> Vec<&'a Row> {
        let mut rows: Vec<_> = model.rows().collect();
        match self.order {
            Order::Waiters => rows.sort_by_key(|row| Reverse(row.lock.waiters.len())),
            Order::Age => rows.sort_by_key(|row| row.since),
            Order::Name => {}
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
        if let Front::Reason { name, typed } = &mut self.front {
            match key.code {
                KeyCode::Esc => self.front = Front::Nothing,
                KeyCode::Backspace => {
                    typed.pop();
                }
                KeyCode::Char(typed_now) => typed.push(typed_now),
                KeyCode::Enter if !typed.trim().is_empty() => {
                    let action = Action::Break {
                        name: std::mem::take(name),
                        reason: std::mem::take(typed),
                    };
                    self.front = Front::Nothing;
                    return action;
                }
                _ => {}
            }
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.front == Front::Nothing => return Action::Quit,
            KeyCode::Esc => self.front = Front::Nothing,
            KeyCode::Up | KeyCode::Char('k') => self.step(model, -1),
            KeyCode::Down | KeyCode::Char('j') => self.step(model, 1),
            KeyCode::Enter => {
                self.front = if self.front == Front::Detail {
                    Front::Nothing
                } else {
                    Front::Detail
                }
            }
            KeyCode::Char('s') => {
                self.order = match self.order {
                    Order::Waiters => Order::Age,
                    Order::Age => Order::Name,
                    Order::Name => Order::Waiters,
                }
            }
            KeyCode::Char('b') => {
                let rows = self.ordered(model);
                if let Some(at) = self.position(&rows) {
                    self.front = Front::Reason {
                        name: rows[at].lock.name.clone(),
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::model::tests::held;
    use super::*;

    fn two_locks() -> Model {
        let mut model = Model::new("memory", "*");
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
        let (name, reason) = ("b".to_owned(), "q!".to_owned());
        assert_eq!(action, Action::Break { name, reason }, "most wait for b");
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
