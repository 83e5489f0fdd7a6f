//! One figure of `docs/performance.json`, from the run that the page names.

use serde_json::Value;

/// The median over the rounds of one figure of one workload, with only these options set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    scenario: &'static str,
    strategy: &'static str,
    client: &'static str,
    kind: &'static str,
    workers: u64,
    locks: u64,
    /// How many turns a process passes on; `None` for the default.
    turns: Option<&'static str>,
    figure: &'static str,
}

impl Measured {
    /// An uncontended lock.
    pub(crate) const fn alone(
        strategy: &'static str,
        kind: &'static str,
        figure: &'static str,
    ) -> Self {
        Self {
            scenario: "uncontended",
            strategy,
            client: "redis-rs",
            kind,
            workers: 1,
            locks: 1,
            turns: None,
            figure,
        }
    }

    /// One lock that 32 workers want, with a request to the server for each acquisition.
    pub(crate) const fn wanted(kind: &'static str, figure: &'static str) -> Self {
        Self {
            scenario: "hot-lock",
            workers: 32,
            turns: Some("1"),
            ..Self::alone("locktopus", kind, figure)
        }
    }

    /// The resident memory of a client for each of 10,000 locks that it holds.
    pub(crate) const fn held(client: &'static str) -> Self {
        Self {
            scenario: "held-memory",
            client,
            locks: 10_000,
            ..Self::alone("locktopus", "lock", "client memory")
        }
    }

    /// The same for each of 10,000 tasks that wait for this many locks.
    pub(crate) const fn waiting(client: &'static str, locks: u64) -> Self {
        Self {
            scenario: "waiting-memory",
            workers: 10_000,
            locks,
            ..Self::held(client)
        }
    }

    fn is_of(&self, subject: &Value) -> bool {
        let plain = |name: &str| ["rounds", "turns"].contains(&name);
        let options = subject["options"].as_object();
        subject["scenario"] == self.scenario
            && subject["strategy"] == self.strategy
            && subject["client"] == self.client
            && subject["topology"] == "standalone"
            && subject["lock_kind"] == self.kind
            && subject["workers"] == self.workers
            && subject["locks"] == self.locks
            && subject["through_proxy"] == false
            && subject["options"]["turns"].as_str() == self.turns
            && options.is_none_or(|all| all.keys().all(|name| plain(name)))
    }

    pub(crate) fn read(&self, performance: &Value) -> Result<f64, String> {
        let cells = performance["cells"].as_array().into_iter().flatten();
        let found: Vec<&Value> = cells
            .filter(|cell| self.is_of(&cell["subject"]))
            .map(|cell| &cell["figures"][self.figure])
            .collect();
        let [figure] = found[..] else {
            return Err(format!("{} cells of {self:?}", found.len()));
        };
        let rounds = figure.as_array().into_iter().flatten();
        median(rounds.filter_map(Value::as_f64).collect()).ok_or_else(|| format!("no {self:?}"))
    }

    /// As in tables: `1,462`.
    pub(crate) fn whole(&self, performance: &Value) -> Result<String, String> {
        Ok(grouped(&format!("{:.0}", self.read(performance)?)))
    }
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b',')).unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[test]
fn figures_are_medians_in_groups_of_three() {
    assert_eq!(median(vec![3.0, 1.0, 2.0, 9.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
    for (digits, shown) in [("7", "7"), ("1462", "1,462"), ("123456", "123,456")] {
        assert_eq!(grouped(digits), shown);
    }
}
