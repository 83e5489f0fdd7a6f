//! The trace of a run, line by line.

/// The lines of one run, if a trace was requested.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: Option<Vec<(u64, String)>>,
}

impl Trace {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            lines: wanted.then(Vec::new),
        }
    }

    pub(crate) fn say(&mut self, at: u64, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push((at, what()));
        }
    }

    /// Sorts by true time, since processes run a little ahead of the world.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let mut lines = self.lines.take().unwrap_or_default();
        lines.sort_by_key(|(at, _)| *at);
        let lines = lines
            .into_iter()
            .map(|(at, line)| format!("{:>10.3} ms  {line}", at as f64 / 1_000.0));
        lines.collect()
    }
}
