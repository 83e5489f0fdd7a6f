//! Replication: what replicas receive and confirm, and `WAIT`.

use locktopus_model::redis::{Change, Published, Role};
use locktopus_protocol::Reply;

use crate::event::{Call, Event, Request, Waiting};
use crate::world::{MS, World};

impl World {
    /// A replica receives writes and messages.
    pub(crate) fn replicate(
        &mut self,
        from: usize,
        to: usize,
        stream: u64,
        offset: u64,
        changes: Vec<Change>,
        published: Vec<Published>,
    ) {
        // The replica follows another primary by now, or a server is down: the writes are lost.
        if self.nodes[from].stream != stream
            || !self.nodes[from].replicas.contains_key(&to)
            || !self.nodes[to].up
        {
            return;
        }
        let replica = &mut self.nodes[to];
        for change in changes {
            replica.server.keys.apply(change);
        }
        replica.applied = offset;
        // Plain messages reach all servers of a cluster in another way.
        let published: Vec<_> = published
            .into_iter()
            .filter(|message| message.sharded || self.slots.is_none())
            .collect();
        self.publish(to, &published);
        let travel = self.travels_from(self.now, None);
        self.after(
            travel,
            Event::Confirm {
                from,
                to,
                stream,
                offset,
            },
        );
    }

    pub(crate) fn confirm(&mut self, from: usize, to: usize, stream: u64, offset: u64) {
        let primary = &mut self.nodes[from];
        if primary.stream != stream || !primary.up {
            return;
        }
        if let Some(confirmed) = primary.replicas.get_mut(&to) {
            *confirmed = offset.max(*confirmed);
        }
        self.look_at_waits(from);
    }

    /// Whether a pipeline of the same client waits there, so this one has to queue behind it.
    pub(crate) fn is_blocked(&self, request: &Request) -> bool {
        let waiting = self.nodes[request.node].waiting.iter();
        let mut waiting = waiting.filter(|waiting| waiting.request.link == request.link);
        waiting.any(|waiting| waiting.request.epoch == request.epoch)
    }

    pub(crate) fn wait_behind(&mut self, request: Request) {
        let node = request.node;
        self.nodes[node].waiting.push_back(Waiting {
            request,
            replies: Vec::new(),
            wait: None,
        });
    }

    /// Begins the `WAIT` that is the next command of a pipeline.
    pub(crate) fn begin_wait(&mut self, mut waiting: Waiting) {
        let Call::Commands(commands) = &waiting.request.call else {
            return;
        };
        let words = &commands[waiting.replies.len()];
        let number = |at: usize| -> u64 {
            let word = words
                .get(at)
                .and_then(|word| std::str::from_utf8(word).ok());
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        let node = waiting.request.node;
        let until = self.now + number(2) * MS;
        let wanted = usize::try_from(number(1)).unwrap_or(0);
        waiting.wait = Some((self.nodes[node].offset, wanted, until));
        self.count("WAIT");
        self.nodes[node].waiting.push_front(waiting);
        self.at(until, Event::WaitOver(node));
        self.look_at_waits(node);
    }

    /// Ends the waits that are over, and runs the pipelines queued behind them.
    pub(crate) fn look_at_waits(&mut self, node: usize) {
        loop {
            let now = self.now;
            let here = &self.nodes[node];
            let confirmed =
                |offset: u64| here.replicas.values().filter(|at| **at >= offset).count();
            let over = here.waiting.iter().position(|waiting| {
                waiting.wait.is_some_and(|(offset, wanted, until)| {
                    now >= until || confirmed(offset) >= wanted
                })
            });
            let next = over.or_else(|| {
                here.waiting.iter().position(|waiting| {
                    let same = |other: &&Waiting| {
                        other.request.link == waiting.request.link && other.wait.is_some()
                    };
                    waiting.wait.is_none() && !here.waiting.iter().any(|other| same(&other))
                })
            });
            let Some(Waiting {
                request,
                mut replies,
                wait,
            }) = next.and_then(|at| self.nodes[node].waiting.remove(at))
            else {
                return;
            };
            if let Some((offset, ..)) = wait {
                let here = &self.nodes[node];
                let confirmed = here.replicas.values().filter(|at| **at >= offset).count();
                self.trace
                    .say(now, || format!("n{node} WAIT => {confirmed}"));
                replies.push(Ok(Reply::Int(i64::try_from(confirmed).unwrap_or(0))));
            }
            self.run(request, replies);
        }
    }

    /// A replica copies everything from its primary, and follows it from then on.
    pub(crate) fn resync(&mut self, node: usize, stream: u64) {
        let primary = self.primary_of(node);
        if !self.nodes[node].up || self.nodes[node].stream != stream || node == primary {
            return;
        }
        if !self.nodes[primary].is_primary() {
            let pause = 20 * MS + self.travel;
            self.after(pause, Event::Resync { node, stream });
            return;
        }
        let (keys, offset, replid) = {
            let primary = &self.nodes[primary];
            (
                primary.server.keys.clone(),
                primary.offset,
                primary.server.replid.clone(),
            )
        };
        self.trace
            .say(self.now, || format!("n{node} has everything of n{primary}"));
        self.witness.forget(node);
        let replica = &mut self.nodes[node];
        replica.server.keys = keys;
        replica.server.role = Role::Replica;
        replica.server.replid = replid;
        replica.applied = offset;
        replica.stream_busy_until = self.now;
        self.nodes[primary].replicas.insert(node, offset);
    }
}
