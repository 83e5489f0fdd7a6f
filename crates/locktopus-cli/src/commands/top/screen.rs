//! Draws the screen.

use std::time::Instant;

use clap::ValueEnum as _;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Block, Cell, Clear, Paragraph, Row as Cells, Table, TableState, Widget as _, Wrap,
};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::columns::{Column, columns};
use super::model::{Model, Row, Severity};
use super::view::{Front, View};
use crate::commands::status;
use crate::failure::spell;
use crate::output::visible;

const KEYS: &str = "↑↓ select   Enter inspect   b break   / filter   s S sort   r reverse   q quit";

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, view: &mut View, now: Instant) {
    let [head, list, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let rows = view.ordered(model);
    let at = view.position(&rows);
    frame.render_widget(Paragraph::new(heading(&rows, model, view, now)), head);
    frame.render_stateful_widget(
        table(&rows, list.width, view.colours, now),
        list,
        &mut TableState::new().with_selected(at),
    );
    let alarming = style(Severity::Bad, view.colours);
    let foot_text = match (&view.message, &model.trouble) {
        (Some(message), _) => Line::from(visible(message)).style(bold()),
        (None, Some(trouble)) => Line::from(format!("stale: {}", visible(trouble))).style(alarming),
        (None, None) if view.front == Front::Filter => Line::from(format!(
            "/{}_   Enter keeps the filter, Esc ends it",
            visible(&view.filter)
        )),
        (None, None) if !view.filter.is_empty() => Line::from(format!(
            "/{}   Esc ends the filter   {KEYS}",
            visible(&view.filter)
        )),
        (None, None) => Line::from(KEYS).style(faint()),
    };
    frame.render_widget(foot_text, foot);
    match &view.front {
        Front::Nothing | Front::Filter => {}
        Front::Detail => {
            if let Some(row) = at.map(|at| rows[at]) {
                let block = Block::bordered();
                in_front(frame, &status::plain(&row.lock), block, " Esc closes ");
            }
        }
        Front::Reason { name, typed, .. } => {
            let block = Block::bordered().style(alarming);
            let title = format!(" Break {name:?} ");
            in_front(frame, &question(model, name, typed), block, &title);
        }
    }
}

fn heading<'a>(rows: &[&Row], model: &Model, view: &View, now: Instant) -> Vec<Line<'a>> {
    let order = view.order.to_possible_value();
    let order = order.map_or_else(String::new, |order| order.get_name().to_owned());
    let first = format!(
        "locktopus  {}   names {}   by {order}{}",
        visible(&model.servers),
        visible(&model.pattern),
        if view.reversed { ", reversed" } else { "" }
    );
    let all = model.rows().count();
    let of = if rows.len() < all {
        format!("{} of ", rows.len())
    } else {
        String::new()
    };
    let count = |is: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let waiters = rows.iter().map(|row| row.lock.waiters.len()).sum::<usize>();
    let mut second = vec![Span::raw(format!("{of}{all} held   {waiters} waiting"))];
    if model.left_out > 0 {
        second.push(Span::raw(format!("   {} left out", model.left_out)));
    }
    let bad = count(&|row| row.lease != Severity::Fine);
    if bad > 0 {
        let worst = rows.iter().map(|row| row.lease).max().unwrap_or_default();
        let text = format!("{bad} not renewed");
        second.extend([
            Span::raw("   "),
            Span::styled(text, style(worst, view.colours)),
        ]);
    }
    let long = count(&|row| row.waits != Severity::Fine);
    if long > 0 {
        let text = format!("{long} waited for over {}", spell(model.long_wait));
        let style = style(Severity::Warning, view.colours);
        second.extend([Span::raw("   "), Span::styled(text, style)]);
    }
    let changes = model.changes_per_second(now);
    second.push(Span::raw(format!("   {changes:.1} hand-offs/s")));
    vec![Line::from(first).style(bold()), Line::from(second)]
}

fn table<'a>(rows: &[&Row], width: u16, colours: bool, now: Instant) -> Table<'a> {
    let columns = columns(width);
    let shown = |row: &&Row| {
        let cells = columns.iter().map(|(column, width)| {
            let (text, severity) = cell(row, *column, now);
            let text = Text::from(fit(&visible(&text), usize::from(*width)));
            Cell::from(text).style(style(severity, colours))
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

/// The text, with an ellipsis for what does not fit.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or_default();
        used <= width
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{kept}…")
}

fn cell(row: &Row, column: Column, now: Instant) -> (String, Severity) {
    let lock = &row.lock;
    let holder = lock.holders.first();
    // On a terminal without colours, the mark tells.
    let marked = |text: &str, severity| match severity {
        Severity::Fine => (text.to_owned(), severity),
        _ => (format!("!{text}"), severity),
    };
    let text = match column {
        Column::Name => return (lock.name.clone(), row.severity()),
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
        Column::Held => row.held.text(now),
        Column::Lease => {
            let left = holder.map_or("", |holder| match holder.remaining_ms {
                Some(_) => &holder.remaining,
                None => "endless",
            });
            return marked(left, row.lease);
        }
        Column::Waiting => lock.waiters.len().to_string(),
        Column::Longest => {
            let wait = row.wait.map(|wait| wait.text(now));
            return marked(&wait.unwrap_or_default(), row.waits);
        }
        Column::Token => lock
            .reserved_token
            .map(|token| token.to_string())
            .unwrap_or_default(),
    };
    (text, Severity::Fine)
}

/// What to type comes first: a small screen cuts the rest.
fn question(model: &Model, name: &str, typed: &str) -> String {
    let holder = model.get(name).and_then(|row| row.lock.holders.first());
    let holder = holder.map_or_else(
        || "It is no longer held.".to_owned(),
        |holder| {
            let holder = holder.named();
            format!("Held by {holder}, which may go on working until it notices. Only fencing tokens stop its writes.")
        },
    );
    format!("Reason: {typed}_\n\nEnter breaks it, Esc cancels.\n\n{holder}")
}

/// Shows a text in a box as high as the text needs at this width.
fn in_front(frame: &mut Frame<'_>, text: &str, block: Block<'_>, title: &str) {
    let whole = frame.area();
    let margin = if whole.width < 60 { 0 } else { 8 };
    let width = (whole.width - margin).min(90);
    let lines: Vec<_> = text.lines().map(|line| Line::from(visible(line))).collect();
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    // One row more than there is shows whether the text is cut.
    let inner = block.inner(Rect {
        width,
        height: whole.height + 1,
        ..whole
    });
    let needed = rows(&text, inner) + 2;
    let cut = if needed > whole.height {
        "(cut: the screen is too small) "
    } else {
        ""
    };
    let height = needed.min(whole.height);
    let area = Rect {
        x: whole.x + (whole.width - width) / 2,
        y: whole.y + (whole.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, area);
    frame.render_widget(text.block(block.title(format!("{title}{cut}"))), area);
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

fn style(severity: Severity, colours: bool) -> Style {
    match severity {
        Severity::Fine => Style::new(),
        _ if !colours => bold(),
        Severity::Warning => Style::new().fg(Color::Yellow),
        Severity::Bad => Style::new().fg(Color::Red),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::tests::{held, model};
    use super::*;

    fn screen(model: &Model, view: &mut View) -> String {
        screen_of(100, model, view)
    }

    fn screen_of(width: u16, model: &Model, view: &mut View) -> String {
        drawn(width, 16, model, view, Instant::now())
            .backend()
            .to_string()
    }

    fn drawn(
        width: u16,
        height: u16,
        model: &Model,
        view: &mut View,
        now: Instant,
    ) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, model, view, now))
            .unwrap();
        terminal
    }

    /// The text on the screen in each colour.
    fn coloured(terminal: &Terminal<TestBackend>, colour: Color) -> String {
        let cells = terminal.backend().buffer().content().iter();
        let cells = cells.filter(|cell| cell.fg == colour && cell.symbol() != " ");
        cells.map(ratatui::buffer::Cell::symbol).collect()
    }

    #[test]
    fn what_is_wrong_has_a_colour_and_a_mark() {
        let (mut model, start) = (model(), Instant::now());
        let mut endless = held("endless", "owner#0000002a", 0);
        endless.holders[0].remaining_ms = None;
        model.update(start, vec![held("slow", "owner#0000002b", 1), endless]);
        let now = start + model.long_wait + std::time::Duration::from_secs(1);
        let mut endless = held("endless", "owner#0000002a", 0);
        endless.holders[0].remaining_ms = None;
        model.update(now, vec![held("slow", "owner#0000002b", 1), endless]);
        for colours in [true, false] {
            let mut view = View {
                colours,
                ..View::default()
            };
            let terminal = drawn(80, 16, &model, &mut view, now);
            let text = terminal.backend().to_string();
            for part in [
                "1 not renewed",
                "1 waited for over 30s",
                "!endless",
                "!≥31s",
            ] {
                assert!(text.contains(part), "{part} is not on\n{text}");
            }
            let (red, yellow) = ("1notrenewedendless!endless", "1waitedforover30sslow!≥31s");
            let expected = if colours { (red, yellow) } else { ("", "") };
            let found = (
                coloured(&terminal, Color::Red),
                coloured(&terminal, Color::Yellow),
            );
            assert_eq!((&*found.0, &*found.1), expected);
        }
    }

    #[test]
    fn what_does_not_fit_ends_with_an_ellipsis() {
        assert_eq!(
            (fit("", 0), fit("job", 3)),
            (String::new(), "job".to_owned())
        );
        assert_eq!(
            (fit("job:1", 3), fit("日本語", 4)),
            ("jo…".to_owned(), "日…".to_owned())
        );
    }

    #[test]
    fn a_tiny_screen_still_asks_the_question() {
        let mut model = model();
        model.update(Instant::now(), vec![held("job:mail", "owner#0000002a", 2)]);
        for (width, height) in [(1, 1), (20, 3), (20, 6)] {
            let mut view = View {
                front: Front::Reason {
                    name: "job:mail".to_owned(),
                    owner: None,
                    typed: "x".to_owned(),
                },
                ..View::default()
            };
            let text = drawn(width, height, &model, &mut view, Instant::now())
                .backend()
                .to_string();
            assert!(height == 1 || text.contains("Reason: x_"), "{text}");
        }
    }

    #[test]
    fn a_name_is_readable_on_every_screen() {
        let mut model = model();
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
        let mut model = model();
        model.left_out = 3;
        model.update(Instant::now(), vec![held("job:mail", "owner#0000002a", 2)]);
        let mut view = View::default();
        let list = screen(&model, &mut view);
        for part in [
            "redis-rs (standalone)",
            "job:mail",
            "owner#0000002a",
            "29s",
            "1 held   2 waiting   3 left out",
            "≥0.0s",
        ] {
            assert!(list.contains(part), "{part} is not on\n{list}");
        }
        view.front = Front::Detail;
        assert!(
            screen(&model, &mut view).contains("waiting 2: owner#00000001, exclusive, for ≥0.0s")
        );
        view.front = Front::Reason {
            name: "job:mail".to_owned(),
            owner: None,
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
