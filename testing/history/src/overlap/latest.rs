//! The span that ends last, and the last one by another holder.

/// Answers "which earlier span of another holder ends last?" in constant time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest {
    first: Option<Ending>,
    /// By another holder than `first`.
    second: Option<Ending>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) end: u64,
    pub(crate) holder: u32,
    pub(crate) index: usize,
}

impl Latest {
    pub(crate) fn offer(&mut self, new: Ending) {
        match self.first {
            Some(first) if first.holder == new.holder => {
                if new.end > first.end {
                    self.first = Some(new);
                }
            }
            Some(first) if new.end <= first.end => {
                if self.second.is_none_or(|second| new.end > second.end) {
                    self.second = Some(new);
                }
            }
            first => {
                self.second = first;
                self.first = Some(new);
            }
        }
    }

    pub(crate) fn of_others(&self, holder: u32) -> Option<Ending> {
        self.first
            .filter(|first| first.holder != holder)
            .or(self.second)
    }
}
