//! Maps values to positions.

/// Maps values to user units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    log: bool,
    domain: (f64, f64),
    range: (f64, f64),
}

impl Scale {
    /// Between two given values.
    pub(crate) const fn linear(min: f64, max: f64) -> Self {
        Self {
            log: false,
            domain: (min, max),
            range: (0.0, 1.0),
        }
    }

    /// Logarithmic over the positive ones of `values`, extended to the next 1, 2 or 5.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut min, mut max) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|v| *v > 0.0 && v.is_finite()) {
            (min, max) = (min.min(value), max.max(value));
        }
        if max == 0.0 {
            (min, max) = (1.0, 10.0);
        }
        let domain = (step_down(min * 0.97), step_up(max * 1.03));
        Self {
            log: true,
            domain,
            range: (0.0, 1.0),
        }
    }

    /// The same onto positions from `a` to `b`.
    pub(crate) const fn onto(mut self, a: f64, b: f64) -> Self {
        self.range = (a, b);
        self
    }

    /// The position of `value`, limited to the range.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (min, max) = self.domain;
        let share = if self.log {
            (value.max(min) / min).ln() / (max / min).ln()
        } else {
            (value - min) / (max - min)
        };
        let (a, b) = self.range;
        a + share.clamp(0.0, 1.0) * (b - a)
    }

    /// Values worth a grid line.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let (min, max) = self.domain;
        if !self.log {
            let step = step_up((max - min) / 5.0);
            let first = (min / step).ceil() as i64;
            return (first..)
                .map(|n| n as f64 * step)
                .take_while(|v| *v <= max * 1.0001)
                .collect();
        }
        let decades = (max / min).log10();
        let factors: &[f64] = if decades < 1.6 {
            &[1.0, 2.0, 5.0]
        } else if decades < 3.2 {
            &[1.0, 3.0]
        } else {
            &[1.0]
        };
        let first = min.log10().floor() as i32;
        let last = max.log10().ceil() as i32;
        (first..=last)
            .flat_map(|e| factors.iter().map(move |factor| factor * 10_f64.powi(e)))
            .filter(|v| (min * 0.999..=max * 1.001).contains(v))
            .collect()
    }
}

fn step_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    steps
        .into_iter()
        .find(|step| *step >= value * 0.9999)
        .unwrap_or(value)
}

fn step_down(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * decade);
    steps
        .into_iter()
        .find(|step| *step <= value * 1.0001)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_domain_meet_ends_of_the_range() {
        let scale = Scale::log([12.0, 800.0]).onto(100.0, 0.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!((scale.at(1_000.0) - 0.0).abs() < 1e-9);
        assert_eq!(scale.ticks(), [10.0, 30.0, 100.0, 300.0, 1_000.0]);
    }

    #[test]
    fn nothing_to_show_is_not_a_panic() {
        assert!(!Scale::log([]).ticks().is_empty());
        assert!(Scale::log([7.0]).at(7.0).is_finite());
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(Scale::linear(0.0, 9.0).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }
}
