//! The committed list of targets.

use std::time::Duration;

use serde::Deserialize;

use super::Select;
use super::select::Each;
use crate::measure::summary;
use crate::shared::file::FileError;

/// All targets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// In the order of the page.
    pub target: Vec<Target>,
}

/// One target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Short name.
    pub id: String,
    /// The subject of the target.
    pub what: String,
    /// The goal.
    pub goal: String,
    /// Why the goal is not met: the physics, or the promise that costs the time.
    pub cost: Option<String>,
    /// Another design, and its measured result.
    pub tried: Option<String>,
    /// How it is judged.
    pub check: Vec<Check>,
}

/// One comparison, or several alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name of the figure.
    pub figure: String,
    /// Its words for users. A check with such words is also on their page.
    pub expect: Option<String>,
    /// Name of a figure of the same cell that is subtracted.
    pub less: Option<String>,
    /// Name of a figure of the same cell that it is divided by.
    pub per: Option<String>,
    /// The selection of the cell.
    pub of: Select,
    /// How the cell differs whose figure it is divided by.
    pub over: Option<Select>,
    /// Every combination of these values is a case of its own.
    #[serde(default)]
    pub each: Each,
    /// The figure must not exceed this.
    pub at_most: Option<Bound>,
    /// The figure must not be less than this.
    pub at_least: Option<Bound>,
}

/// The bound for a figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A plain number.
    Number(f64),
    /// A duration in words.
    Duration(#[serde(with = "humantime_serde")] Duration),
}

impl Bound {
    /// In the unit of the figures: nanoseconds for durations.
    #[must_use]
    pub fn value(&self) -> f64 {
        match self {
            Self::Number(value) => *value,
            Self::Duration(duration) => duration.as_nanos() as f64,
        }
    }
}

impl Targets {
    /// The committed list.
    ///
    /// # Errors
    ///
    /// [`FileError`]; a test makes sure that there is none.
    pub fn committed() -> Result<Self, FileError> {
        Self::parse(include_str!("../../../targets.toml"))
    }

    /// Reads and checks a list.
    ///
    /// # Errors
    ///
    /// [`FileError`] naming the target.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let bad = |problem: &dyn std::fmt::Display| FileError::of("targets.toml", problem);
        let targets: Self = toml::from_str(text).map_err(|error| bad(&error))?;
        for target in &targets.target {
            let named = |problem: String| bad(&format!("{}: {problem}", target.id));
            for check in &target.check {
                check.examine().map_err(named)?;
            }
            if target.cost.is_some() != target.tried.is_some() {
                return Err(named("cost and tried belong together".to_owned()));
            }
            if targets.target.iter().filter(|t| t.id == target.id).count() > 1 {
                return Err(bad(&format!("{} is there twice", target.id)));
            }
        }
        Ok(targets)
    }
}

impl Target {
    /// The obstacle and the alternative that was tried, if both are given.
    #[must_use]
    pub fn explanation(&self) -> Option<(&str, &str)> {
        Some((self.cost.as_deref()?.trim(), self.tried.as_deref()?.trim()))
    }
}

impl Check {
    fn examine(&self) -> Result<(), String> {
        for figure in std::iter::once(&self.figure)
            .chain(&self.less)
            .chain(&self.per)
        {
            if !summary::is_figure(figure) {
                return Err(format!("there is no figure {figure:?}"));
            }
        }
        if self.per.is_some() && (self.less.is_some() || self.over.is_some()) {
            return Err("per stands alone, without less and over".to_owned());
        }
        if self.at_most.is_some() && self.at_least.is_some() {
            return Err("at_most and at_least are two checks".to_owned());
        }
        let bound = self.at_most.iter().chain(&self.at_least).next();
        let duration = is_duration(&self.figure) && !self.is_ratio();
        match bound {
            Some(Bound::Number(_)) if duration => Err(format!(
                "{:?} is a duration, its bound must be one",
                self.figure
            )),
            Some(Bound::Duration(_)) if !duration => Err(format!(
                "{:?} is a number, its bound must be one",
                self.figure
            )),
            _ => Ok(()),
        }
    }

    /// Whether another check has the same bound for the same figure, and differs at most in what it
    /// compares with.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        let bounds = |check: &Self| (check.at_most.clone(), check.at_least.clone());
        self.name() == other.name()
            && self.of == other.of
            && self.each == other.each
            && bounds(self) == bounds(other)
            && (bounds(self) != (None, None) || self.over == other.over)
    }

    /// The figure as the page names it.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.less, &self.per) {
            (Some(less), _) => format!("{} − {less}", self.figure),
            (None, Some(per)) => format!("{} / {per}", self.figure),
            (None, None) => self.figure.clone(),
        }
    }

    /// Whether the judged value is a ratio.
    pub(super) const fn is_ratio(&self) -> bool {
        self.over.is_some() || self.per.is_some()
    }
}

/// Whether a figure is in nanoseconds.
pub(super) fn is_duration(figure: &str) -> bool {
    let latency = crate::measure::derive::Quantile::ALL
        .iter()
        .any(|quantile| figure.ends_with(&format!(" {}", quantile.name())));
    latency || matches!(figure, "server CPU" | "client CPU" | "RTT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_list_is_good() {
        let targets = Targets::committed().unwrap();
        assert!(targets.target.len() > 10);
        let checks = targets.target.iter().flat_map(|target| &target.check);
        assert!(checks.filter(|check| check.at_most.is_some()).count() > 10);
    }

    #[test]
    fn mistakes_are_named() {
        let list = |check: &str| {
            format!("[[target]]\nid = \"a\"\nwhat = \"\"\ngoal = \"\"\n[[target.check]]\n{check}")
        };
        let bad = |check: &str| Targets::parse(&list(check)).unwrap_err().to_string();
        assert!(bad("figure = \"p50\"\nof = {}").contains("no figure \"p50\""));
        let number = bad("figure = \"hand-off p50\"\nof = {}\nat_most = 3");
        assert!(number.contains("is a duration"), "{number}");
        let duration = bad("figure = \"Jain\"\nof = {}\nat_most = \"1us\"");
        assert!(duration.contains("is a number"), "{duration}");
        assert!(bad("figure = \"Jain\"\nof = { colour = 1 }").contains("colour"));
        let good = list("figure = \"Jain\"\nof = {}");
        assert!(Targets::parse(&good).is_ok());
        let half = good.replace("what", "cost = \"light\"\nwhat");
        let half = Targets::parse(&half).unwrap_err();
        assert!(half.to_string().contains("belong together"));
        let twice = Targets::parse(&format!("{good}\n{good}")).unwrap_err();
        assert!(twice.to_string().contains("twice"));
    }
}
