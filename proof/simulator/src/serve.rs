//! How servers handle requests: commands, scripts, waiting for replicas, subscriptions.

use bytes::Bytes;
use locktopus_model::lua::{Evaluation, Interpreter};
use locktopus_model::redis::{Published, Reply as Told, Role, ScriptTime, Server};
use locktopus_protocol::scripts::Script;
use locktopus_protocol::slot::key_slot;
use locktopus_protocol::{ClientError, PushEvent, Reply};

use crate::event::{Call, Delivery, Event, LISTENING, Request, Waiting};
use crate::flaw::Flaw;
use crate::known_script::{Known, known_script, members, script_of, split, together};
use crate::link::topic;
use crate::world::{MS, World};

thread_local! {
    /// It keeps only compiled scripts between calls.
    static LUA: Interpreter = Interpreter::new().expect("an embedded Lua starts");
}

/// Runs a script on a server.
fn evaluate(server: &mut Server, source: &str, words: &[Vec<u8>], name: &str) -> Evaluation {
    let (keys, arguments) = split(words);
    let evaluated = LUA.with(|lua| lua.eval(server, &lua.load(source)?, keys, arguments));
    evaluated.unwrap_or_else(|lacking| panic!("{name}: {lacking}"))
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace(char::is_control, " ");
    text.chars().take(90).collect()
}

impl World {
    /// Runs the commands of a request, from the first without a reply.
    pub(crate) fn run(&mut self, request: Request, mut replies: Vec<Result<Reply, ClientError>>) {
        let (Call::Commands(commands) | Call::Asking(commands)) = &request.call else {
            return;
        };
        let asking = matches!(request.call, Call::Asking(_));
        for command in &commands[replies.len()..] {
            if command[0] == b"WAIT" {
                self.begin_wait(Waiting {
                    request,
                    replies,
                    wait: None,
                });
                return;
            }
            let reply = self.command(request.node, request.link, command, asking);
            replies.push(reply);
        }
        self.answer(&request, replies);
    }

    fn command(
        &mut self,
        number: usize,
        link: usize,
        words: &[Vec<u8>],
        asking: bool,
    ) -> Result<Reply, ClientError> {
        let process = self.links[link].process;
        self.nodes[number].set_time(self.now);
        let elsewhere = self.redirect(number, words, asking);
        let (what, answer) = match (words[0].as_slice(), elsewhere) {
            (_, Some(elsewhere)) => ("", elsewhere),
            (b"CLUSTER", _) => ("CLUSTER", self.cluster_nodes(number)),
            (b"PUBSUB", _) if words.len() == 2 => ("PUBSUB", Told::Array(Vec::new())),
            (b"EVALSHA", _) => self.evalsha(number, words),
            (b"EVAL", _) => self.eval(number, words),
            (b"ROLE", _) => ("ROLE", self.role(number)),
            (b"INFO", _) => ("INFO", self.info(number, words)),
            _ => {
                let answer = self.nodes[number].server.command(words);
                ("", answer.unwrap_or_else(|lacking| panic!("{lacking}")))
            }
        };
        self.trace.say(self.now, || {
            let words: Vec<_> = words
                .iter()
                .skip(if what.is_empty() { 0 } else { 2 })
                .map(|word| text(word))
                .collect();
            format!(
                "p{process} n{number} {what} {} => {}",
                words.join(" "),
                shown(&answer)
            )
        });
        self.spread(number);
        match answer {
            Told::Error(line) => Err(ClientError::rejected(&line)),
            reply => Ok(as_reply(reply)),
        }
    }

    fn evalsha(&mut self, number: usize, words: &[Vec<u8>]) -> (&'static str, Told) {
        let digest = String::from_utf8_lossy(&words[1]).into_owned();
        match known_script(&digest) {
            Some(known) if self.nodes[number].scripts.contains(&digest) => {
                (known.script.name, self.called(number, known, words))
            }
            _ => {
                self.count("NOSCRIPT");
                (
                    "EVALSHA",
                    Told::Error("NOSCRIPT No matching script.".to_owned()),
                )
            }
        }
    }

    fn eval(&mut self, number: usize, words: &[Vec<u8>]) -> (&'static str, Told) {
        let source = String::from_utf8_lossy(&words[1]).into_owned();
        let Some(known) = script_of(&source) else {
            return ("EVAL", self.script(number, "eval", &source, words));
        };
        let digest = known.script.digest().to_owned();
        self.nodes[number].scripts.insert(digest);
        (known.script.name, self.called(number, known, words))
    }

    fn called(&mut self, number: usize, Known { script, of }: Known, words: &[Vec<u8>]) -> Told {
        match of {
            Some(member) => self.batch(number, script, member, words),
            None => self.script(number, script.name, script.source, words),
        }
    }

    /// Runs a batch. It must do what its members do one after the other, so they run on a copy of
    /// the server, where the witness judges each of them. Those that share one reading of the clock
    /// run while it stands still.
    fn batch(
        &mut self,
        number: usize,
        script: &'static Script,
        member: &'static Script,
        words: &[Vec<u8>],
    ) -> Told {
        self.count("batch");
        let server = &mut self.nodes[number].server;
        let advances = server.script_time;
        if ["lock_acquire", "mutex_acquire"].contains(&member.name) {
            server.script_time = ScriptTime::Frozen;
        }
        let real = server.clone();
        let (mut alone, mut published) = (Vec::new(), real.published().to_vec());
        for call in members(words) {
            alone.push(self.script(number, member.name, member.source, &call));
            published.extend(self.nodes[number].server.take_published());
        }
        let copy = std::mem::replace(&mut self.nodes[number].server, real);
        let source = match self.flaw {
            Some(flaw) => flaw.changes(member.name, script.source),
            None => script.source.into(),
        };
        let server = &mut self.nodes[number].server;
        let told = evaluate(server, &source, words, script.name).reply;
        server.script_time = advances;
        let refused = matches!(told, Told::Error(_)) && alone.iter().all(|one| *one == told);
        let same = server.keys == copy.keys
            && server.published() == published
            && (refused || told == together(&alone));
        self.witness.batch(same, self.now, script.name, &told);
        match self.flaw {
            Some(flaw) => flaw.answers(script.name, told),
            None => told,
        }
    }

    fn script(
        &mut self,
        number: usize,
        name: &'static str,
        source: &str,
        words: &[Vec<u8>],
    ) -> Told {
        let (keys, arguments) = split(words);
        self.count(name);
        let flaw = self.flaw;
        let source = match flaw {
            Some(flaw) => flaw.changes(name, source),
            None => source.into(),
        };
        let to_true = self.nodes[number].to_true();
        let on_its_way = self.slots.as_ref().is_some_and(|slots| {
            keys.first()
                .is_some_and(|key| slots.moving.contains_key(&key_slot(key)))
        });
        let server = &mut self.nodes[number].server;
        let before = self.witness.look(name, server, keys, arguments, on_its_way);
        if flaw.is_some_and(|flaw| flaw.forgets(name, server.clock)) {
            server.keys.clear();
        }
        let evaluated = evaluate(server, &source, words, name);
        if name != "eval" {
            let at = (self.now, number);
            self.witness
                .judge(at, (name, keys), &before, &evaluated, server, to_true);
        }
        if server.published().iter().any(|message| message.sharded) {
            self.count("SPUBLISH");
        }
        match flaw {
            Some(flaw) => flaw.answers(name, evaluated.reply),
            None => evaluated.reply,
        }
    }

    /// Sends what a server has just done to listeners and replicas.
    pub(crate) fn spread(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let (changes, mut published) = (node.server.take_changes(), node.server.take_published());
        if self.flaw == Some(Flaw::ShardsAreSilent) {
            published.retain(|message| !message.sharded);
        }
        self.publish(number, &published);
        if self.slots.is_some() {
            let plain = published.iter().filter(|message| !message.sharded).cloned();
            let plain: Vec<_> = plain.collect();
            for other in (0..self.nodes.len()).filter(|other| *other != number) {
                self.publish(other, &plain);
            }
        }
        let node = &mut self.nodes[number];
        if node.server.role != Role::Primary || (changes.is_empty() && published.is_empty()) {
            return;
        }
        node.offset += 1;
        let (stream, offset) = (node.stream, node.offset);
        let replicas: Vec<_> = node.replicas.keys().copied().collect();
        for to in replicas {
            let travel = self.travels_from(self.now, None) + self.nodes[to].lag;
            let replica = &mut self.nodes[to];
            // Replicas receive everything in order.
            let at = (self.now + travel).max(replica.stream_busy_until + 1);
            replica.stream_busy_until = at;
            let (changes, published) = (changes.clone(), published.clone());
            self.at(
                at,
                Event::Replicate {
                    from: number,
                    to,
                    stream,
                    offset,
                    changes,
                    published,
                },
            );
        }
    }

    /// Delivers messages to the listeners of this server.
    pub(crate) fn publish(&mut self, number: usize, published: &[Published]) {
        for message in published {
            let topic = (message.sharded, message.channel.clone());
            for link in 0..self.links.len() {
                if self.links[link].listens_at != number
                    || !self.links[link].topics.contains(&topic)
                {
                    continue;
                }
                let travel = self.travels();
                let at = self.links[link].arrival(LISTENING, true, self.now, travel);
                let event = PushEvent::Message {
                    channel: Bytes::from(message.channel.clone()),
                    payload: Bytes::from(message.message.clone()),
                };
                let epoch = self.listening_epoch(link);
                self.deliver(link, at, Delivery::Push { epoch, event });
            }
        }
    }

    fn role(&self, number: usize) -> Told {
        let node = &self.nodes[number];
        match node.server.role {
            Role::Primary => Told::Array(vec![
                Told::Bulk(b"master".to_vec()),
                Told::Int(1),
                Told::Array(vec![Told::Array(Vec::new()); node.replicas.len()]),
            ]),
            Role::Replica => Told::Array(vec![Told::Bulk(b"slave".to_vec())]),
        }
    }

    fn info(&mut self, number: usize, words: &[Vec<u8>]) -> Told {
        let node = &mut self.nodes[number];
        if words.get(1).is_some_and(|section| section == b"server") {
            let seconds = (self.now - node.started) / MS / 1_000;
            return Told::Bulk(
                format!(
                    "run_id:{:040x}\r\nuptime_in_seconds:{seconds}\r\n",
                    node.run_id
                )
                .into_bytes(),
            );
        }
        node.server
            .command(words)
            .unwrap_or_else(|lacking| panic!("{lacking}"))
    }

    pub(crate) fn subscribe(&mut self, request: &Request) {
        let Request { link, node, .. } = *request;
        let Call::Subscribe(channels) = &request.call else {
            return;
        };
        if let Some(line) = self.redirect_listener(node, channels) {
            let refused = ClientError::rejected(&line);
            self.answer(request, vec![Err(refused)]);
            return;
        }
        // Adapters check the role first, and treat a replica as a failed connection.
        if !self.nodes[node].is_primary() {
            self.disconnect(link, "a replica was subscribed on");
            return;
        }
        if self.links[link].listens_at != node {
            self.stop_listening(link);
            self.links[link].listens_at = node;
        }
        for topic in channels.iter().map(topic) {
            if self.links[link].topics.insert(topic.clone()) {
                *self.nodes[node].server.listeners.entry(topic).or_default() += 1;
            }
        }
        self.count("subscribed");
        self.answer(request, vec![Ok(Reply::Nil)]);
    }
}

fn shown(reply: &Told) -> String {
    match reply {
        Told::Nil => "nil".to_owned(),
        Told::Int(number) => number.to_string(),
        Told::Bulk(bytes) => text(bytes),
        Told::Status(line) | Told::Error(line) => line.clone(),
        Told::Array(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

fn as_reply(reply: Told) -> Reply {
    match reply {
        Told::Nil => Reply::Nil,
        Told::Int(number) => Reply::Int(number),
        Told::Bulk(bytes) => Reply::Bytes(bytes.into()),
        Told::Status(text) | Told::Error(text) => Reply::Bytes(text.into()),
        Told::Array(items) => Reply::Array(items.into_iter().map(as_reply).collect()),
    }
}
