//! The network between processes and servers: it loses, copies, delays and reorders.

use crate::Rng;
use crate::sim::rules::{MS, Micros};

/// How bad a network is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    /// Messages in a thousand that never arrive.
    pub(super) loss: u64,
    /// Messages in a thousand that arrive twice.
    pub(super) copies: u64,
    /// How long a message usually takes.
    pub(super) usual: (Micros, Micros),
    /// Messages in a thousand that take much longer.
    pub(super) stuck: u64,
    /// How long those take at most.
    pub(super) longest: Micros,
}

impl Weather {
    /// Everything arrives, once, and soon.
    pub(super) fn calm(self) -> Self {
        Self {
            loss: 0,
            copies: 0,
            stuck: 0,
            ..self
        }
    }

    /// The longest time a message can take.
    pub(super) fn slowest(&self) -> Micros {
        if self.stuck > 0 {
            self.usual.1.max(self.longest)
        } else {
            self.usual.1
        }
    }
}

/// The one message that something happens to where nothing else does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mishap {
    /// Counted from 1.
    pub(super) message: u64,
    /// How long it takes; `None` if it is lost.
    pub(super) delay: Option<Micros>,
}

/// Decides what becomes of each message.
#[derive(Debug)]
pub(super) struct Net {
    rng: Rng,
    pub(super) weather: Weather,
    mishap: Option<Mishap>,
    sent: u64,
}

impl Net {
    pub(super) fn new(rng: Rng, weather: Weather, mishap: Option<Mishap>) -> Self {
        Self {
            rng,
            weather,
            mishap,
            sent: 0,
        }
    }

    /// After which times the copies of a message arrive.
    pub(super) fn deliveries(&mut self) -> Vec<Micros> {
        let Weather { loss, copies, .. } = self.weather;
        self.sent += 1;
        if let Some(mishap) = self.mishap.filter(|mishap| mishap.message == self.sent) {
            return mishap.delay.into_iter().collect();
        }
        if self.rng.permille(loss) {
            return Vec::new();
        }
        let mut deliveries = vec![self.delay()];
        if self.rng.permille(copies) {
            deliveries.push(self.delay());
        }
        deliveries
    }

    fn delay(&mut self) -> Micros {
        let Weather {
            usual,
            stuck,
            longest,
            ..
        } = self.weather;
        if self.rng.permille(stuck) {
            self.rng.between(usual.1, longest.max(usual.1))
        } else {
            self.rng.between(usual.0, usual.1)
        }
    }
}

/// How long a message takes from process to process on one machine, at most.
pub(super) const LOCAL: Micros = MS / 2;
