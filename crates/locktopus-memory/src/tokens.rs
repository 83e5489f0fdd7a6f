//! Last tokens of unused names, if a request asked to remember them.
//!
//! Tokens of this backend grow without this: all names share one count.

use std::collections::HashMap;
use std::time::Duration;

use locktopus_contract::TokenRetention;
use locktopus_contract::clock::timer_in;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Tokens {
    last: HashMap<String, LastToken>,
    sweep_at: usize,
}

#[derive(Debug)]
struct LastToken {
    token: u64,
    /// `None`: for ever.
    until: Option<Instant>,
}

impl LastToken {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Tokens {
    /// Remembers the last token of a name, starting with a grant for this lease.
    pub(super) fn remember(
        &mut self,
        key: String,
        token: u64,
        keep: TokenRetention,
        lease: Duration,
    ) {
        if self.last.len() >= self.sweep_at {
            let now = Instant::now();
            self.last.retain(|_, last| !last.is_over(now));
            self.sweep_at = (self.last.len() * 2).max(1024);
        }
        let until = keep.after_lease(lease).map(timer_in);
        self.last.insert(key, LastToken { token, until });
    }

    /// Remembers it for at least this long from now.
    pub(super) fn keep(&mut self, key: &str, keep: Duration) {
        if let Some(until) = self.last.get_mut(key).and_then(|last| last.until.as_mut()) {
            *until = timer_in(keep).max(*until);
        }
    }

    pub(super) fn of(&self, key: &str) -> Option<u64> {
        let last = self.last.get(key)?;
        (!last.is_over(Instant::now())).then_some(last.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokens_are_kept_for_longer_and_never_shorter() {
        let mut tokens = Tokens::default();
        let (minute, lease) = (TokenRetention::SHORTEST, Duration::from_secs(1));
        tokens.remember("a".to_owned(), 1, minute.into(), lease);
        tokens.remember("b".to_owned(), 2, TokenRetention::Forever, lease);
        for (key, keep) in [
            ("a", minute * 2),
            ("a", minute),
            ("b", minute),
            ("c", minute),
        ] {
            tokens.keep(key, keep);
        }
        tokio::time::advance(minute * 2 - lease).await;
        let seen = |tokens: &Tokens| ["a", "b", "c"].map(|key| tokens.of(key));
        assert_eq!(seen(&tokens), [Some(1), Some(2), None]);
        tokio::time::advance(lease).await;
        assert_eq!(seen(&tokens), [None, Some(2), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_remembered_as_long_as_asked_for() {
        let mut tokens = Tokens::default();
        let (minute, lease) = (TokenRetention::SHORTEST, Duration::from_secs(1));
        tokens.remember("a".to_owned(), 1, minute.into(), lease);
        tokens.remember("b".to_owned(), 2, TokenRetention::Forever, lease);
        tokens.remember("c".to_owned(), 3, minute.into(), minute);
        let seen = |tokens: &Tokens| ["a", "b", "c", "d"].map(|key| tokens.of(key));
        assert_eq!(seen(&tokens), [Some(1), Some(2), Some(3), None]);
        tokio::time::advance(minute).await;
        assert_eq!(seen(&tokens), [None, Some(2), Some(3), None]);
        tokens.sweep_at = 0;
        tokens.remember("d".to_owned(), 4, minute.into(), lease);
        assert_eq!(tokens.last.len(), 3);
    }
}
