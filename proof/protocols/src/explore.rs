//! Visits every state of a model, and returns the outcome.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stateright::{Checker, HasDiscoveries, Model};

/// The record of a run besides the checker: the first state that breaks a rule, and the kinds of
/// actions that occurred.
#[derive(Debug, Default)]
pub struct Notes {
    broken: AtomicBool,
    kinds: AtomicU64,
}

impl Notes {
    /// The property as the checker sees it: only the first state that breaks a property counts.
    /// States are visited by their distance from the start, so that is a shortest path to the
    /// break; the checker would report the last one it saw.
    pub fn holds(&self, fine: bool) -> bool {
        fine || self.broken.swap(true, Ordering::Relaxed)
    }

    /// Records that an action of this kind occurred.
    pub fn occurred(&self, kind: u32) {
        self.kinds.fetch_or(1 << kind, Ordering::Relaxed);
    }
}

/// A model of one protocol, with the rules it follows.
pub trait Protocol: Model<State: Clone + PartialEq + Hash + Send + Sync + 'static> {
    /// The kinds of actions, in the order of their numbers in [`Notes::occurred`].
    const KINDS: &'static [&'static str];

    /// The notes of this run.
    fn notes(&self) -> &Notes;
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The number of different states.
    pub states: usize,
    /// The number of steps between them.
    pub steps: usize,
    /// The longest of the shortest paths to each state.
    pub depth: usize,
    /// The kinds of actions that never occurred.
    pub missing: Vec<&'static str>,
    /// The shortest path to a broken property.
    pub broken: Option<Broken>,
}

/// A counterexample.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The broken property.
    pub property: &'static str,
    /// The actions, in order.
    pub actions: Vec<String>,
}

/// Visits the states of a model: all of them, or until one breaks a property.
///
/// # Panics
///
/// If the model does.
#[must_use]
pub fn explore<M>(model: M) -> Outcome
where
    M: Protocol + Send + Sync + 'static,
    M::Action: Clone + PartialEq + Debug,
    M::State: Debug,
{
    // One thread: the same states in the same order in every run.
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let broken = checker.discoveries().into_iter().next();
    let seen = checker.model().notes().kinds.load(Ordering::Relaxed);
    let kinds = M::KINDS.iter().enumerate();
    Outcome {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        missing: kinds
            .filter(|(kind, _)| seen & (1 << kind) == 0)
            .map(|(_, name)| *name)
            .collect(),
        broken: broken.map(|(property, path)| Broken {
            property,
            actions: path
                .into_actions()
                .iter()
                .map(|action| format!("{action:?}"))
                .collect(),
        }),
    }
}
