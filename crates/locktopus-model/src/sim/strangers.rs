//! Clients that take the name for another kind of lock: whatever they ask while it is in use, nothing changes and they are
//! told. And operators who lose the number of a semaphore and give it anew.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::Rng;
use crate::lua::{Interpreter, Program};
use crate::redis::{Reply, Server, Unsupported};
use crate::sim::calls::{Call, Calls};
use crate::sim::config::Config;
use crate::sim::kind::Kind;
use crate::sim::patch::Patch;

/// Their calls, and the scripts that were loaded for them.
#[derive(Debug)]
pub(super) struct Strangers {
    others: Vec<Calls>,
    own: Calls,
    patch: Option<Patch>,
    /// By name as well: scripts of one text may differ once they are patched.
    programs: RefCell<HashMap<(&'static str, String), Rc<Program>>>,
}

/// A call and what came of it.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) script: &'static str,
    pub(super) reply: Reply,
}

impl Heard {
    /// Whether the answer is one for somebody who has no business with the name.
    pub(super) fn is_turned_away(&self) -> bool {
        if self.script.ends_with("_release") {
            return self.reply.items().first().and_then(Reply::as_int) == Some(0);
        }
        if self.script.ends_with("_extend") {
            let answers = self.reply.items().iter().map(Reply::as_int);
            return self.reply.items().len() == 1 && answers.flatten().all(|it| it < 1);
        }
        // A request that comes too late, or finds no memory, is told that.
        let late = self.reply.items().first().and_then(Reply::as_int) == Some(2);
        late || matches!(&self.reply, Reply::Error(error) if error.starts_with("WRONGKIND ") || error.starts_with("OOM "))
    }
}

impl Strangers {
    /// None, unless the configuration has them.
    pub(super) fn of(config: &Config) -> Result<Option<Self>, Unsupported> {
        if !config.strangers {
            return Ok(None);
        }
        let others = Kind::ALL.into_iter().filter(|kind| *kind != config.kind);
        Ok(Some(Self {
            others: others.map(Calls::new).collect::<Result<_, _>>()?,
            own: Calls::new(config.kind)?,
            patch: config.patch,
            programs: RefCell::default(),
        }))
    }

    /// Somebody asks for the name as another kind.
    pub(super) fn ask(
        &self,
        lua: &Interpreter,
        server: &mut Server,
        rng: &mut Rng,
    ) -> Result<Heard, Unsupported> {
        let calls = rng.pick(&self.others);
        let call = if rng.permille(100) {
            calls.latch(rng)
        } else {
            calls.next(rng, server.clock)
        };
        self.run(lua, server, call)
    }

    /// Somebody gives a semaphore this many permits.
    pub(super) fn give(
        &self,
        lua: &Interpreter,
        server: &mut Server,
        total: i64,
        operation: u64,
    ) -> Result<Option<Heard>, Unsupported> {
        let call = self.own.counter("init", total, operation);
        call.map(|call| self.run(lua, server, call)).transpose()
    }

    fn run(
        &self,
        lua: &Interpreter,
        server: &mut Server,
        call: Call,
    ) -> Result<Heard, Unsupported> {
        let Call {
            script,
            source,
            keys,
            arguments,
        } = call;
        let key = (script, source);
        let known = self.programs.borrow().get(&key).cloned();
        let program = match known {
            Some(program) => program,
            None => {
                let text = match &self.patch {
                    Some(patch) => patch.apply_to(script, &key.1)?,
                    None => key.1.as_str().into(),
                };
                let program = Rc::new(lua.load(&text)?);
                self.programs.borrow_mut().insert(key, Rc::clone(&program));
                program
            }
        };
        let evaluation = lua.eval(server, &program, &keys, &arguments)?;
        Ok(Heard {
            script,
            reply: evaluation.reply,
        })
    }
}
