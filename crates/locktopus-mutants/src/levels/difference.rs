//! Whether a mutant does anything else at all: the same random calls on two modelled servers, of which one has the scripts as
//! they are shipped.
//!
//! This is no test. It only tells those survivors that a test could notice from those that perhaps none can.

use std::collections::HashMap;

use locktopus_model::Rng;
use locktopus_model::lua::{Interpreter, Program, Replaced, replace};
use locktopus_model::redis::{ScriptTime, Server};
use locktopus_model::sim::{Call, Calls, Kind, LAPSES};

use crate::mutants::Mutant;
use crate::verdict::Verdict;

/// Calls after which both servers are emptied.
const ROUND: u64 = 60;

/// What is seen of a mutant that survived, in so many calls of each kind.
pub(super) fn look(mutant: &Mutant, kinds: &[Kind], calls: u64) -> Verdict {
    let mut called = false;
    for kind in kinds {
        let ran = Pair::new(mutant, *kind).and_then(|mut pair| {
            let difference = pair.run(calls)?;
            called |= pair.called;
            Ok(difference)
        });
        match ran {
            Ok(None) => {}
            Ok(Some(how)) => return Verdict::Observable { how },
            Err(error) => {
                let how = format!("{kind:?}: {error}");
                return Verdict::Observable { how };
            }
        }
    }
    match called {
        true => Verdict::Alike,
        false => Verdict::NotCalled,
    }
}

struct Pair<'a> {
    mutant: &'a Mutant,
    kind: Kind,
    lua: Interpreter,
    calls: Calls,
    servers: [Server; 2],
    programs: HashMap<&'static str, [Program; 2]>,
    /// A script that is changed was called.
    called: bool,
}

impl<'a> Pair<'a> {
    fn new(mutant: &'a Mutant, kind: Kind) -> Result<Self, String> {
        Ok(Self {
            mutant,
            kind,
            lua: Interpreter::new().map_err(|error| error.to_string())?,
            calls: Calls::new(kind).map_err(|error| error.to_string())?,
            servers: Default::default(),
            programs: HashMap::new(),
            called: false,
        })
    }

    fn run(&mut self, calls: u64) -> Result<Option<String>, String> {
        let mut rng = Rng::new(self.kind as u64);
        for at in 0..calls {
            if at % ROUND == 0 {
                self.fresh(&mut rng);
            }
            let mut passed = rng.between(1, 3_000);
            if rng.permille(60) {
                passed += *rng.pick(&LAPSES) * 1_000;
            }
            self.servers
                .iter_mut()
                .for_each(|server| server.clock += passed);
            let call = self.calls.next(&mut rng, self.servers[0].clock);
            if let Some(difference) = self.compare(&call)? {
                return Ok(Some(format!("{:?}, call {at}: {difference}", self.kind)));
            }
        }
        Ok(None)
    }

    fn fresh(&mut self, rng: &mut Rng) {
        let clock = self.servers[0].clock;
        let mut server = Server::default();
        server.clock = clock;
        // Scripts that run other commands take another time, which is no difference.
        server.script_time = ScriptTime::Frozen;
        let listened = self.calls.listened();
        for channel in listened.into_iter().filter(|_| rng.permille(800)) {
            server.listeners.insert((false, channel), 1);
        }
        self.servers = [server.clone(), server];
    }

    fn load(&self, source: &str, replaced: Option<Replaced>) -> Result<Program, String> {
        replace(replaced);
        let program = self.lua.load(source);
        replace(None);
        program.map_err(|error| error.to_string())
    }

    fn compare(&mut self, call: &Call) -> Result<Option<String>, String> {
        if !self.programs.contains_key(call.script) {
            self.called |= call.source.contains(&self.mutant.before);
            let shipped = self.load(&call.source, None)?;
            let changed = self.load(&call.source, Some(self.mutant.replaced()))?;
            self.programs.insert(call.script, [shipped, changed]);
        }
        let programs = &self.programs[call.script];
        let mut outcomes = Vec::new();
        for (server, program) in self.servers.iter_mut().zip(programs) {
            let evaluation = self.lua.eval(server, program, &call.keys, &call.arguments);
            let reply = evaluation.map_err(|error| error.to_string())?.reply;
            outcomes.push((reply, server.take_published(), server.picture()));
        }
        let different = outcomes[0] != outcomes[1];
        Ok(different.then(|| {
            let arguments = call.arguments.iter().map(|it| String::from_utf8_lossy(it));
            let arguments = arguments.collect::<Vec<_>>().join(" ");
            format!(
                "{} {arguments}\n{:#?}\nbecame {:#?}",
                call.script, outcomes[0], outcomes[1]
            )
        }))
    }
}
