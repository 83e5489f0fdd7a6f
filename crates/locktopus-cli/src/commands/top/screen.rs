//! Draws the screen.

use std::time::Instant;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{
    Block, Clear, Paragraph, Row as Cells, Table, TableState, Widget as _, Wrap,
};

use super::columns::{Column, columns};
use super::model::{Model, Row};
use super::view::{Front, View};
use crate::commands::status;
use crate::output::{age, colours_wanted, visible};

const KEYS: &str = "↑↓ select   Enter inspect   b break   s sort   q quit";

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, view: &mut View, now: Instant) {
    let [head, list, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(model, view, now)), head);
    let rows = view.ordered(model);
    let at = view.position(&rows);
    frame.render_stateful_widget(
        table(&rows, list.width, now),
        list,
        &mut TableState::new().with_selected(at),
    );
    let foot_text = match (&view.message, &model.trouble) {
        (Some(message), _) => Line::from(visible(message)).style(bold()),
        (None, Some(trouble)) => {
            Line::from(format!("stale: {}", visible(trouble))).style(alarming())
        }
        (None, None) => Line::from(KEYS).style(faint()),
    };
    frame.render_widget(foot_text, foot);
    match &view.front {
        Front::Nothing => {}
        Front::Detail => {
            if let Some(row) = at.map(|at| rows[at]) {
                detail(frame, row);
            }
        }
        Front::Reason { name, typed } => reason(frame, model, name, typed),
    }
}

fn heading<'a>(model: &Model, view: &View, now: Instant) -> Vec<Line<'a>> {
    let first = format!(
        "locktopus  {}   names {}   by {}",
        model.place,
        model.pattern,
        view.order.word()
    );
    let second = format!(
        "{} held   {} waiting   {:.1} hand-offs/s seen",
        model.rows().count(),
        model.waiters(),
        model.changes_per_second(now)
    );
    vec![Line::from(first).style(bold()), Line::from(second)]
}

fn table<'a>(rows: &[&Row], width: u16, now: Instant) -> Table<'a> {
    let columns = columns(width);
    let shown = |row: &&Row| {
        let cells = columns.iter().map(|(column, _)| {
            let text = cell(row, *column, now);
            visible(&text).into_owned()
        });
        Cells::new(cells.collect::<Vec<_>>())
    };
    let cells: Vec<_> = rows.iter().map(shown).collect();
    let headings = columns.iter().map(|(column, _)| column.heading());
    let headings = Cells::new(headings.collect::<Vec<_>>());
    let widths = columns.iter().map(|(_, wide)| Constraint::Length(*wide));
    Table::new(cells, widths)
        .header(headings.style(faint()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn cell(row: &Row, column: Column, now: Instant) -> String {
    let lock = &row.lock;
    let holder = lock.holders.first();
    match column {
        Column::Name => lock.name.clone(),
        Column::Kind => lock.kind.to_owned(),
        Column::Holder => {
            let first = holder.map(|holder| {
                let person = holder.person.short();
                person.unwrap_or_else(|| holder.owner.clone())
            });
            let first = first.unwrap_or_default();
            match lock.holders.len() {
                0 | 1 => first,
                holders => format!("{first} +{}", holders - 1),
            }
        }
        Column::Held => {
            let longer = if row.from_the_start { "≥ " } else { "" };
            let held = age(now.saturating_duration_since(row.since));
            format!("{longer}{held}")
        }
        Column::Lease => holder
            .map(|holder| holder.remaining.clone())
            .unwrap_or_default(),
        Column::Waiting => lock.waiters.len().to_string(),
        Column::Token => lock
            .last_token
            .map(|token| token.to_string())
            .unwrap_or_default(),
    }
}

fn detail(frame: &mut Frame<'_>, row: &Row) {
    let block = Block::bordered().title(" Esc closes ");
    in_front(frame, &status::plain(&row.lock), block);
}

fn reason(frame: &mut Frame<'_>, model: &Model, name: &str, typed: &str) {
    let holder = model.get(name).and_then(|row| row.lock.holders.first());
    let holder = holder.map_or_else(
        || "It is no longer held.".to_owned(),
        |holder| {
            let holder = holder.named();
            format!("Held by {holder}, which may go on working until it notices. Only fencing tokens stop its writes.")
        },
    );
    let text = format!("{holder}\n\nReason: {typed}_\n\nEnter breaks it, Esc cancels.");
    let block = Block::bordered()
        .title(format!(" Break {name:?} "))
        .style(alarming());
    in_front(frame, &text, block);
}

/// Shows a text in a box as high as the text needs at this width.
fn in_front(frame: &mut Frame<'_>, text: &str, block: Block<'_>) {
    let whole = frame.area();
    let width = whole.width.saturating_sub(8).min(90);
    let lines: Vec<_> = text.lines().map(|line| Line::from(visible(line))).collect();
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    let height = rows(&text, block.inner(Rect { width, ..whole })) + 2;
    let height = height.min(whole.height);
    let area = Rect {
        x: whole.x + (whole.width - width) / 2,
        y: whole.y + (whole.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, area);
    frame.render_widget(text.block(block), area);
}

/// How many rows a text takes in this area after wrapping.
fn rows(text: &Paragraph<'_>, area: Rect) -> u16 {
    let mut drawn = Buffer::empty(area);
    text.render(area, &mut drawn);
    let cells = drawn.content().chunks(usize::from(area.width.max(1)));
    let blank = cells
        .rev()
        .take_while(|row| row.iter().all(|cell| cell.symbol() == " "));
    area.height - u16::try_from(blank.count()).unwrap_or(area.height)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn alarming() -> Style {
    if colours_wanted() {
        Style::new().fg(Color::Red)
    } else {
        bold()
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::tests::held;
    use super::*;

    fn screen(model: &Model, view: &mut View) -> String {
        screen_of(100, model, view)
    }

    fn screen_of(width: u16, model: &Model, view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 16)).unwrap();
        let now = Instant::now();
        terminal
            .draw(|frame| draw(frame, model, view, now))
            .unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_name_is_readable_on_every_screen() {
        let mut model = Model::new("redis-rs (standalone)", "*");
        let name = "nightly-report:12345";
        model.update(Instant::now(), vec![held(name, "owner#0000002a", 2)]);
        for width in [60, 79, 80, 100, 132] {
            let shown = screen_of(width, &model, &mut View::default());
            assert!(shown.contains(name), "{shown}");
            assert!(shown.contains("owner#0000002a"), "{shown}");
        }
        // No text may command the terminal.
        let odd = held("\u{202e}a\n\u{1b}c", "owner\n#0000002a", 0);
        model.update(Instant::now(), vec![odd]);
        model.failed("no\u{1b}".to_owned());
        for front in [Front::Nothing, Front::Detail] {
            let mut view = View {
                front,
                ..View::default()
            };
            let shown = screen_of(100, &model, &mut view);
            let spelt = ["\\u{202e}a\\n\\u{1b}c", "stale: no\\u{1b}"];
            assert!(spelt.iter().all(|part| shown.contains(part)), "{shown}");
            let owner = view.front == Front::Detail || shown.contains("owner\\n#0000002a");
            assert!(owner && !shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        }
    }

    #[test]
    fn locks_details_and_the_question_are_on_the_screen() {
        let mut model = Model::new("redis-rs (standalone)", "job:*");
        model.update(Instant::now(), vec![held("job:mail", "owner#0000002a", 2)]);
        let mut view = View::default();
        let list = screen(&model, &mut view);
        for part in [
            "redis-rs (standalone)",
            "job:mail",
            "owner#0000002a",
            "29s",
            "1 held   2 waiting",
            "≥ 0.0s",
        ] {
            assert!(list.contains(part), "{part} is not on\n{list}");
        }
        view.front = Front::Detail;
        assert!(screen(&model, &mut view).contains("waiting 2: owner#000000ff"));
        view.front = Front::Reason {
            name: "job:mail".to_owned(),
            typed: "stuck".to_owned(),
        };
        for width in [40, 60, 100] {
            let question = screen_of(width, &model, &mut view);
            for part in [
                "Break \"job:mail\"",
                "Reason: stuck_",
                "Enter breaks it, Esc cancels.",
            ] {
                assert!(question.contains(part), "{part} is not on\n{question}");
            }
        }
        model.failed("redis-rs: no connection".to_owned());
        assert!(screen(&model, &mut View::default()).contains("stale: redis-rs: no connection"));
    }
}
