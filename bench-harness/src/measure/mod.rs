//! Contention latency of Locktopus on real servers, as HDR histograms.
//!
//! | folder | what is in it |
//! |---|---|
//! | `model` | the stored report (JSON): every other folder reads or fills it |
//! | `plan` | what to measure: scenario files and the tasks that they expand to |
//! | `record` | what a worker records, and how the recorders of many workers become a round |
//! | `derive` | figures computed from a stored report: medians, spreads, ratios, groups |
//! | `summary` | the part of reports that is kept: figures by round, without histograms |
//! | `opening` | the start of report and page: one busy lock, ours beside others |
//! | `completeness` | what a report must contain to count |
//! | `report` | a stored report as table and HTML |
//! | `targets` | stored reports judged against the targets: the pages of performance in docs |
//! | `worker` | the child process that takes the locks |
//! | `run` | the parent process: servers, rounds, children |
//! | `humantime_list` | durations in words, in scenario files and targets |
//! | `synthetic` | invented reports, for tests |
//!
//! Data flows one way: workers fill a
//! [`record::Recorder`], the runner turns merged recorders into rounds of a [`model::Report`],
//! [`mod@derive`] computes from it, and [`report`] and [`targets`] show the result. Everything
//! after the recorder works on stored data only, so any run can be rendered again, long after
//! the servers are gone.
//!
//! Layers, lowest first: humantime_list, model, plan, record, derive, summary, opening,
//! completeness, report, targets, worker, spin, run.

pub mod completeness;
pub mod derive;
pub(crate) mod humantime_list;
pub mod model;
pub mod opening;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub(crate) mod spin;
pub mod summary;
#[doc(hidden)]
pub mod synthetic;
pub mod targets;
pub mod worker;
