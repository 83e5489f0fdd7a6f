//! Everything outside the processes: servers, the network, and events under way. Time advances with
//! the events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use locktopus_model::Rng;
use locktopus_model::redis::Role;
use locktopus_protocol::{ClientError, PushEvent, Reply};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::event::{Answers, BLOCKING, Call, Delivery, Event, LISTENING, Request};
use crate::flaw::Flaw;
use crate::link::{Link, topic};
use crate::node::Node;
use crate::plan::Plan;
use crate::slots::Slots;
use crate::trace::Trace;
use crate::witness::{Names, Witness};

pub(crate) type Shared = Arc<Mutex<World>>;

pub(crate) const MS: u64 = 1_000;

/// A message that took longer than usual. True times in µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slow {
    /// The process that sent or receives it; `None` between two servers.
    pub(crate) process: Option<usize>,
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
}

/// A message usually takes at most this many times the shortest time.
pub(crate) const USUAL: u64 = 3;

#[derive(Debug)]
pub(crate) struct World {
    /// True time in µs.
    pub(crate) now: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// The primary of each shard, as sentinels or the other shards report it.
    pub(crate) primaries: Vec<usize>,
    /// How often each primary was replaced: the epoch that sentinels report.
    pub(crate) failovers: Vec<u64>,
    /// Which shard serves which slot, in a cluster.
    pub(crate) slots: Option<Slots>,
    /// The names of the plan's locks.
    pub(crate) names: Vec<String>,
    /// The timeout of a call, in ms.
    pub(crate) call_timeout: u64,
    /// The shortest time that a message takes, in µs, and whether each takes exactly that.
    pub(crate) travel: u64,
    steady: bool,
    pub(crate) witness: Witness,
    pub(crate) rng: Rng,
    pub(crate) trace: Trace,
    /// Messages that took longer than usual.
    pub(crate) slow: Vec<Slow>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) flaw: Option<Flaw>,
    queue: BTreeMap<(u64, u64), Event>,
    numbers: u64,
}

impl World {
    pub(crate) fn new(plan: &Plan, flaw: Option<Flaw>, trace: bool) -> Self {
        let (mut nodes, mut primaries) = (Vec::<Node>::new(), Vec::<usize>::new());
        for (number, shard) in plan.shards_of_servers().into_iter().enumerate() {
            // The first server of a shard is its primary.
            let role = match primaries.get(shard) {
                Some(primary) => {
                    nodes[*primary].replicas.insert(number, 0);
                    Role::Replica
                }
                None => {
                    primaries.push(number);
                    Role::Primary
                }
            };
            let mut node = Node::new(number, shard, role);
            node.server.script_time = plan.script_time();
            nodes.push(node);
        }
        let mixed = plan.locks.iter().enumerate().filter(|(place, lock)| {
            let mut before = plan.locks[..*place].iter();
            before.any(|other| other.name == lock.name)
        });
        let names = Names::of(mixed.map(|(_, lock)| lock.name.as_str()));
        let mut world = Self {
            now: 0,
            nodes,
            links: Vec::new(),
            slots: (plan.shards() > 1).then(|| Slots::new(plan)),
            failovers: vec![0; primaries.len()],
            primaries,
            call_timeout: plan.call_timeout(),
            travel: plan.travel * MS,
            steady: plan.steady,
            names: plan.locks.iter().map(|lock| lock.name.clone()).collect(),
            witness: Witness::new(names),
            rng: Rng::new(plan.seed),
            trace: Trace::new(trace),
            slow: Vec::new(),
            counts: BTreeMap::new(),
            flaw,
            queue: BTreeMap::new(),
            numbers: 1_000,
        };
        for (number, (at, fault)) in plan.faults.iter().enumerate() {
            world.at(at * MS, Event::Fault(number, *fault));
        }
        world
    }

    /// A unique number.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn at(&mut self, time: u64, event: Event) {
        let number = self.number();
        self.queue.insert((time, number), event);
    }

    pub(crate) fn after(&mut self, time: u64, event: Event) {
        self.at(self.now + time, event);
    }

    /// How long a message takes: usually a little more than the shortest time.
    pub(crate) fn travels(&mut self) -> u64 {
        if self.steady {
            return self.travel;
        }
        let more = if self.rng.permille(50) { 20 } else { USUAL - 1 };
        self.travel + self.rng.below(self.travel * more)
    }

    /// As [`travels`](Self::travels), but notes slow messages. `process` is `None` between servers.
    pub(crate) fn travels_from(&mut self, sent: u64, process: Option<usize>) -> u64 {
        let travel = self.travels();
        if travel > self.travel * USUAL {
            self.slow.push(Slow {
                process,
                sent,
                arrived: sent + travel,
            });
        }
        travel
    }

    /// Adds a client of a group of servers, connected to the primary.
    pub(crate) fn join(
        &mut self,
        process: usize,
        group: usize,
        events: UnboundedSender<PushEvent>,
        changes: watch::Sender<u64>,
    ) -> usize {
        self.links.push(Link::new(process, group, events, changes));
        let link = self.links.len() - 1;
        self.links[link].to = Some(self.primaries[group]);
        self.links[link].listens_at = self.primaries[group];
        self.links[link].generation = 1;
        link
    }

    /// A process sends a call at `now`. Returns `false` without a connection.
    pub(crate) fn send(
        &mut self,
        link: usize,
        connection: usize,
        now: u64,
        call: Call,
        answers: Option<Answers>,
    ) -> bool {
        let travel = self.travels_from(now, Some(self.links[link].process));
        let number = self.number();
        let from = &mut self.links[link];
        let (Some(node), false) = (from.to, from.closed) else {
            return false;
        };
        let at = from.arrival(connection, false, now, travel);
        let epoch = from.epochs[connection];
        if let Some(answers) = answers {
            from.pending.insert(number, (connection, answers));
        }
        let request = Request {
            link,
            connection,
            epoch,
            node,
            number,
            call,
        };
        self.at(at, Event::Arrive(request));
        true
    }

    /// Sends replies back. They are lost if the connection breaks first.
    pub(crate) fn answer(&mut self, request: &Request, replies: Vec<Result<Reply, ClientError>>) {
        let Request {
            link,
            connection,
            epoch,
            number,
            ..
        } = *request;
        let travel = self.travels_from(self.now, Some(self.links[link].process));
        let at = self.links[link].arrival(connection, true, self.now, travel);
        let answer = Delivery::Answer {
            connection,
            epoch,
            number,
            replies,
        };
        self.deliver(link, at, answer);
    }

    pub(crate) fn deliver(&mut self, link: usize, at: u64, delivery: Delivery) {
        let number = self.number();
        self.links[link].inbox.insert((at, number), delivery);
    }

    /// Whether the process still expects replies on this connection.
    pub(crate) fn expects(&self, link: usize, connection: usize, epoch: u64) -> bool {
        self.links[link].epochs[connection] == epoch
    }

    /// Runs all events before this time.
    pub(crate) fn run_until(&mut self, until: u64) {
        while let Some(entry) = self.queue.first_entry() {
            let (at, _) = *entry.key();
            if at >= until {
                break;
            }
            let event = entry.remove();
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(request) => self.arrive(request),
            Event::Replicate {
                from,
                to,
                stream,
                offset,
                changes,
                published,
            } => {
                self.replicate(from, to, stream, offset, changes, published);
            }
            Event::Confirm {
                from,
                to,
                stream,
                offset,
            } => self.confirm(from, to, stream, offset),
            Event::WaitOver(node) => self.look_at_waits(node),
            Event::Promote(node) => self.promote(node),
            Event::Resync { node, stream } => self.resync(node, stream),
            Event::Start { node, keeps_data } => self.start(node, keeps_data),
            Event::Connect(link) => self.connect(link),
            Event::Fault(number, fault) => self.fault(number, fault),
            Event::Over(lasting) => self.over(lasting),
            Event::MoveKey(slot) => self.move_key(slot),
        }
    }

    /// A request reaches its server.
    fn arrive(&mut self, request: Request) {
        let current = self.links[request.link].epochs[request.connection] == request.epoch;
        // A request that was under way when its connection broke may run or not.
        if !self.nodes[request.node].up {
            if current {
                self.disconnect(request.link, "nobody is there");
            }
            return;
        }
        if !current && self.rng.permille(500) {
            return;
        }
        if current && request.connection == BLOCKING && self.is_blocked(&request) {
            self.wait_behind(request);
            return;
        }
        match &request.call {
            Call::Commands(_) | Call::Asking(_) => self.run(request, Vec::new()),
            Call::Subscribe(_) if !current => {}
            Call::Subscribe(_) => self.subscribe(&request),
            Call::Unsubscribe(channels) => {
                let node = request.node;
                for topic in channels.iter().map(topic) {
                    if self.links[request.link].topics.remove(&topic) {
                        self.uncount(node, &topic);
                    }
                }
            }
        }
    }

    /// An adapter gives up a connection and opens another.
    pub(crate) fn replace(&mut self, link: usize, connection: usize) {
        let link = &mut self.links[link];
        link.epochs[connection] += 1;
        link.note_change();
        link.forget_calls(&[connection]);
    }

    pub(crate) fn listening_epoch(&self, link: usize) -> u64 {
        self.links[link].epochs[LISTENING]
    }
}
