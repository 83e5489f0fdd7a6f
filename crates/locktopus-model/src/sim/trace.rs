//! What happened in a schedule, line by line, if somebody wants to know.

use crate::sim::rules::Micros;

/// Lines kept; the last ones matter.
const LINES: usize = 600;

/// The lines of a schedule. Written only when it is replayed.
#[derive(Debug, Default)]
pub(super) struct Trace {
    on: bool,
    lines: std::collections::VecDeque<String>,
}

impl Trace {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    pub(super) fn note(&mut self, now: Micros, line: impl FnOnce() -> String) {
        if !self.on {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        let (ms, us) = (now / 1_000, now % 1_000);
        self.lines
            .push_back(format!("{ms:>8}.{us:03} ms  {}", line()));
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
