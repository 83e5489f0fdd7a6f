//! Overlapping faults: several begin one after the other, before any of them ends.
//!
//! A turn is drawn in advance from the seed alone, so a seed gives the same turns again, however
//! servers and workers react.

use std::time::Duration;

use locktopus_servers::topology::Node;

use super::connections::{self, Taken};
use super::primary;
use crate::failover::plan::{Place, Scenario, Verb};
use crate::failover::run::RunError;
use crate::failover::run::fault_context::{FaultContext, RECOVERY};
use crate::shared::random::Random;

/// How long to wait for a server that may be away, if others are asked as well.
const ASKED_FOR: Duration = Duration::from_millis(500);

/// One turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    /// The faults in order, each with the pause before it as a share of the longest pause.
    steps: Vec<(Verb, f64)>,
    /// The server, process and target, as shares of their number.
    server: f64,
    process: f64,
}

impl Turn {
    /// Draws the next turn: as many faults as the plan says, each of a different sort.
    pub(super) fn draw(scenario: &Scenario, random: &mut Random) -> Self {
        let (least, most) = scenario.at_once;
        let count = least as usize + random.below((most - least + 1) as usize);
        let mut rest = scenario.combines.clone();
        let mut steps: Vec<(Verb, f64)> = Vec::new();
        while steps.len() < count && !rest.is_empty() {
            let verb = rest.swap_remove(random.below(rest.len()));
            if steps.iter().all(|(other, _)| other.sort() != verb.sort()) {
                steps.push((verb, random.unit()));
            }
        }
        Self {
            steps,
            server: random.unit(),
            process: random.unit(),
        }
    }
}

/// A fault that has begun and must end.
enum Begun<'a> {
    Frozen(&'a Node),
    /// A dead or frozen primary, and one of its locks.
    Primary(&'a Node, String, Verb),
    Down(&'a Node),
    Ahead(&'a Node),
    Stopped(usize),
    Killed(usize),
    /// A removal that found nothing on the remaining servers; repeated when all are back.
    Waits(Verb, Taken),
}

impl Begun<'_> {
    /// Stopped servers and processes continue first: a replica may have to take over from a dead
    /// primary, and new workers wait for servers.
    const fn turn(&self) -> u8 {
        match self {
            Self::Frozen(_) | Self::Stopped(_) => 0,
            Self::Down(_) | Self::Primary(..) => 1,
            Self::Ahead(_) => 2,
            Self::Killed(_) => 3,
            Self::Waits(..) => 4,
        }
    }
}

/// The victims, chosen while everything is well.
struct Victims<'a> {
    node: &'a Node,
    lock: String,
    replica: Option<&'a Node>,
    here: Vec<String>,
}

/// One turn: the faults begin, last together, and end.
pub(super) async fn turn(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let turn = Turn::draw(&context.cell.scenario, &mut context.random);
    let victims = victims(context, &turn).await?;
    context.grant(&victims.here).await?;
    let words: Vec<_> = turn.steps.iter().map(|(verb, _)| verb.name()).collect();
    context.fault(&words.join(" + "))?;
    let mut begun = Vec::new();
    let mut result = Ok(());
    let lasts = context.cell.scenario.lasts;
    for (number, (verb, share)) in turn.steps.iter().enumerate() {
        if number > 0 {
            tokio::time::sleep(lasts.mul_f64(*share) / 2).await;
        }
        result = begin(context, *verb, &victims, &turn, &mut begun).await;
        if result.is_err() {
            break;
        }
    }
    tokio::time::sleep(lasts).await;
    begun.sort_by_key(Begun::turn);
    for one in begun {
        // All faults end, even if ending one of them fails.
        result = result.and(end(context, one).await);
    }
    result
}

async fn victims<'a>(context: &mut FaultContext<'a>, turn: &Turn) -> Result<Victims<'a>, RunError> {
    let nodes = context.place.nodes();
    let part = |of: usize| ((turn.server * of as f64) as usize).min(of.saturating_sub(1));
    let targets = context.targets();
    if context.cell.place == Place::Quorum {
        return Ok(Victims {
            node: &nodes[part(nodes.len())],
            lock: String::new(),
            replica: None,
            here: targets,
        });
    }
    let lock = targets[part(targets.len())].clone();
    let node = context.place.wait_writable(&lock, RECOVERY).await?;
    let hits_replica = |(verb, _): &(Verb, f64)| *verb == Verb::FreezeReplica;
    let replica = if turn.steps.iter().any(hits_replica) {
        Some(primary::replica_of(context, node).await?)
    } else {
        None
    };
    Ok(Victims {
        here: context.on(node).await,
        node,
        lock,
        replica,
    })
}

async fn begin<'a>(
    context: &mut FaultContext<'a>,
    verb: Verb,
    victims: &Victims<'a>,
    turn: &Turn,
    begun: &mut Vec<Begun<'a>>,
) -> Result<(), RunError> {
    if let Some(what) = Taken::by(verb) {
        if connections::is_there(context, what, ASKED_FOR).await {
            context.also(verb, "all")?;
            if connections::where_reached(context, what, ASKED_FOR).await? {
                return Ok(());
            }
        }
        begun.push(Begun::Waits(verb, what));
        context.note("waits for servers");
        return Ok(());
    }
    let node = victims.node;
    let processes = context.pool.processes.len();
    let chosen = ((turn.process * processes as f64) as usize).min(processes - 1);
    // A process other than the stopped one, if there is another.
    let other = (chosen + 1) % processes;
    let target = match verb {
        Verb::StopHolder => format!("process {chosen}"),
        Verb::KillHolder => format!("process {other}"),
        Verb::FreezeReplica => victims.replica.unwrap_or(node).name().to_owned(),
        _ => node.name().to_owned(),
    };
    context.also(verb, &target)?;
    match verb {
        Verb::KillPrimary => {
            node.crash().await?;
            begun.push(Begun::Primary(node, victims.lock.clone(), verb));
        }
        Verb::FreezePrimary => {
            node.freeze().await?;
            begun.push(Begun::Primary(node, victims.lock.clone(), verb));
        }
        Verb::Restart | Verb::RestartNode => {
            node.crash().await?;
            begun.push(Begun::Down(node));
        }
        Verb::Freeze => {
            node.freeze().await?;
            begun.push(Begun::Frozen(node));
        }
        Verb::FreezeReplica => {
            let replica = victims.replica.unwrap_or(node);
            replica.freeze().await?;
            begun.push(Begun::Frozen(replica));
        }
        Verb::StepClock => {
            node.set_clock_ahead(context.cell.scenario.lasts)?;
            begun.push(Begun::Ahead(node));
        }
        Verb::StopHolder => {
            context.pool.processes[chosen].freeze()?;
            begun.push(Begun::Stopped(chosen));
        }
        Verb::KillHolder => {
            context.pool.kill(other).await?;
            begun.push(Begun::Killed(other));
        }
        other => unreachable!("the plan was checked, and has no {other}"),
    }
    Ok(())
}

async fn end(context: &mut FaultContext<'_>, begun: Begun<'_>) -> Result<(), RunError> {
    match begun {
        Begun::Frozen(node) => {
            node.thaw().await?;
            context.note("thawed");
        }
        Begun::Stopped(process) => {
            context.pool.processes[process].thaw();
            context.note("runs on");
        }
        Begun::Down(node) => {
            node.start().await?;
            context.note("back");
        }
        Begun::Primary(node, lock, verb) => {
            let next = primary::successor(context, &lock, node).await;
            if verb == Verb::FreezePrimary {
                node.thaw().await?;
                context.note("thawed");
                next?;
                return primary::until_one_leads(context).await;
            }
            return primary::return_as_replica(context, node, next?).await;
        }
        Begun::Ahead(node) => {
            node.set_clock_ahead(Duration::ZERO)?;
            context.note("right again");
        }
        Begun::Killed(process) => {
            context.pool.revive(process).await?;
            context.note("replaced");
        }
        Begun::Waits(verb, what) => {
            // All servers are back by now.
            connections::until_there(context, what).await?;
            context.also(verb, "all")?;
            return connections::from_all(context, what).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::failover::plan::PlanFile;

    fn scenario() -> Scenario {
        let file = include_str!("../../../../failover/nemesis.toml");
        let plan = PlanFile::parse(file, "nemesis").unwrap();
        plan.scenarios[0].clone()
    }

    fn turns(seed: u64) -> Vec<Turn> {
        let (scenario, mut random) = (scenario(), Random::new(seed));
        (0..200)
            .map(|_| Turn::draw(&scenario, &mut random))
            .collect()
    }

    #[test]
    fn a_seed_gives_the_same_turns_again() {
        assert_eq!(turns(7), turns(7));
        assert_ne!(turns(7), turns(8));
    }

    #[test]
    fn every_turn_has_several_faults_of_different_sorts() {
        let scenario = scenario();
        let mut pairs = BTreeSet::new();
        for turn in turns(1) {
            let sorts: BTreeSet<_> = turn.steps.iter().map(|(verb, _)| verb.sort()).collect();
            assert_eq!(sorts.len(), turn.steps.len(), "{turn:?}");
            let allowed = scenario.at_once.0 as usize..=scenario.at_once.1 as usize;
            assert!(allowed.contains(&sorts.len()), "{turn:?}");
            pairs.insert((turn.steps[0].0.name(), turn.steps[1].0.name()));
        }
        // Each kind of fault begins before each other kind at some time, unless they exclude each
        // other.
        assert!(pairs.len() > 30, "{}", pairs.len());
    }
}
