//! Runs lock scripts in Lua 5.1 against a modelled server, as a real server would.
//!
//! Values convert as on a server with RESP2: numbers lose their fraction, `nil` and `false` are the
//! same, and tables end at their first `nil`.

mod convert;
mod loaded;
mod program;
mod replaced;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::rc::Rc;

use mlua::state::{GcIncParams, GcMode};
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use super::redis::{
    NO_REPLICAS, OUT_OF_MEMORY, Outcome, READONLY, Refusal, Reply, Role, ScriptTime, Server,
    Unsupported, find,
};
use program::Flags;
pub use program::Program;
pub use replaced::{Replaced, concerns, replace};

/// Lua, with the environment of a script. Use one per thread. It keeps nothing from one call to the
/// next, except compiled scripts.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    environment: Table,
    run: Function,
    running: Rc<RefCell<Running>>,
    loaded: RefCell<HashMap<String, Program>>,
}

/// The result of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The reply.
    pub reply: Reply,
    /// Keys that it touched although it did not get them.
    pub undeclared: Vec<Vec<u8>>,
    /// How many commands it ran.
    pub commands: usize,
    /// How often it read the server's clock.
    pub clock_readings: usize,
}

/// The state of the script that runs now.
#[derive(Debug, Default)]
struct Running {
    server: Server,
    declared: Vec<Vec<u8>>,
    flags: Flags,
    memory_was_out: bool,
    undeclared: Vec<Vec<u8>>,
    commands: usize,
    clock_readings: usize,
    lacking: Option<String>,
    /// How many times the hook checked whether it ends.
    rounds: u32,
}

/// Globals of a server that the model leaves out.
const MISSING: [&str; 14] = [
    "bit",
    "cjson",
    "cmsgpack",
    "collectgarbage",
    "gcinfo",
    "getmetatable",
    "load",
    "loadstring",
    "os",
    "rawset",
    "setmetatable",
    "struct",
    "xpcall",
    "_G",
];

/// Lua collects garbage when its memory has grown to this percentage: scripts produce a lot of
/// garbage and keep nothing.
const GC_PAUSE: c_int = 400;

/// A changed script is checked every this many instructions, and stopped after this many checks.
const INSTRUCTIONS: u32 = 100_000;
const ROUNDS: u32 = 50;

impl Interpreter {
    /// Starts Lua.
    ///
    /// # Errors
    ///
    /// If Lua itself fails, which is a defect of this crate.
    pub fn new() -> Result<Self, mlua::Error> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(GC_PAUSE)));
        let running = Rc::new(RefCell::new(Running::default()));
        let shared = Rc::clone(&running);
        let command = lua.create_function(move |lua, words: MultiValue| {
            let reply = shared.borrow_mut().command(&words);
            convert::to_lua(lua, &reply).map(|value| (!matches!(reply, Reply::Error(_)), value))
        })?;
        let shared = Rc::clone(&running);
        let lacking = lua.create_function(move |_, what: String| {
            shared.borrow_mut().lacking.get_or_insert(what);
            Ok(())
        })?;
        let missing = lua.create_table_from(MISSING.map(|name| (name, true)))?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (environment, run) = prelude.call((command, lacking, missing))?;
        let loaded = RefCell::default();
        Ok(Self {
            lua,
            environment,
            run,
            running,
            loaded,
        })
    }

    /// Compiles a script, once for each text.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the text is not valid Lua or its first line is unknown to the model.
    pub fn load(&self, source: &str) -> Result<Program, Unsupported> {
        let (source, changed) = replaced::current(source);
        if let Some(program) = self.loaded.borrow().get(&*source) {
            return Ok(program.clone());
        }
        if changed {
            self.guard()?;
        }
        loaded::note(&source);
        let program = Program::compile(&self.lua, &self.environment, &source)?;
        self.loaded
            .borrow_mut()
            .insert(source.into_owned(), program.clone());
        Ok(program)
    }

    /// Stops scripts that do not end. Shipped scripts always end.
    fn guard(&self) -> Result<(), Unsupported> {
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        let running = Rc::clone(&self.running);
        let stop = move |_: &Lua, _: &mlua::debug::Debug<'_>| {
            let mut running = running.borrow_mut();
            running.rounds += 1;
            if running.rounds < ROUNDS {
                return Ok(VmState::Continue);
            }
            running
                .lacking
                .get_or_insert_with(|| "a script that does not end".to_owned());
            Err(mlua::Error::runtime("it does not end"))
        };
        let set = self.lua.set_hook(triggers, stop);
        set.map_err(|error| Unsupported {
            what: error.to_string(),
        })
    }

    /// Runs a script on a server.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the script needs something that the model lacks, even if it carried on.
    pub fn eval(
        &self,
        server: &mut Server,
        program: &Program,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
    ) -> Result<Evaluation, Unsupported> {
        if let Some(error) = refused(server, program.flags()) {
            return Ok(Evaluation {
                reply: Reply::Error(error.to_owned()),
                undeclared: Vec::new(),
                commands: 0,
                clock_readings: 0,
            });
        }
        self.begin(server, program.flags(), keys);
        let ended = self.run(program, keys, arguments);
        let mut running = self.running.borrow_mut();
        running.server.frozen = None;
        std::mem::swap(&mut running.server, server);
        if let Some(what) = running.lacking.take() {
            return Err(Unsupported { what });
        }
        let reply = ended.unwrap_or_else(|error| Reply::Error(format!("ERR {error}")));
        Ok(Evaluation {
            reply,
            undeclared: std::mem::take(&mut running.undeclared),
            commands: running.commands,
            clock_readings: running.clock_readings,
        })
    }

    fn begin(&self, server: &mut Server, flags: Flags, keys: &[Vec<u8>]) {
        let mut running = self.running.borrow_mut();
        std::mem::swap(&mut running.server, server);
        running.server.frozen = Some(running.server.clock);
        running.server.dirty = false;
        running.memory_was_out = running.server.out_of_memory;
        running.flags = flags;
        keys.clone_into(&mut running.declared);
        running.undeclared.clear();
        running.commands = 0;
        running.clock_readings = 0;
        running.lacking = None;
        running.rounds = 0;
    }

    fn run(
        &self,
        program: &Program,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
    ) -> Result<Reply, mlua::Error> {
        let keys = convert::strings(&self.lua, keys)?;
        let arguments = convert::strings(&self.lua, arguments)?;
        let (fine, value): (bool, Value) = self.run.call((program.function(), keys, arguments))?;
        if fine {
            convert::reply(&value)
        } else {
            convert::failure(&value)
        }
    }
}

/// The error with which a server refuses a script before its first command, if it does.
fn refused(server: &Server, flags: Flags) -> Option<&'static str> {
    if !flags.declared {
        return None;
    }
    let writes = !flags.no_writes;
    if writes && server.role == Role::Replica {
        return Some(READONLY);
    }
    if writes && server.lacks_replicas {
        return Some(NO_REPLICAS);
    }
    if server.out_of_memory && writes && !flags.allow_oom {
        return Some(OUT_OF_MEMORY);
    }
    None
}

impl Running {
    /// Runs one command of the script.
    fn command(&mut self, words: &MultiValue) -> Reply {
        self.commands += 1;
        if let ScriptTime::Advances(micros) = self.server.script_time {
            self.server.clock += micros;
        }
        let commands = self.commands;
        let fault = self.server.script_fault.take_if(|(at, _)| *at == commands);
        if let Some((_, error)) = fault {
            return Reply::Error(error);
        }
        let outcome = match convert::words(words) {
            Ok(words) => self.checked(&words),
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok(reply) => reply,
            Err(Refusal::Error(error)) => Reply::Error(error),
            Err(Refusal::Unsupported(what)) => {
                self.lacking.get_or_insert(what);
                Reply::Error("ERR the model lacks something".to_owned())
            }
        }
    }

    fn checked(&mut self, words: &[Vec<u8>]) -> Outcome {
        let command = find(words).map_err(|error| Refusal::Unsupported(error.what))?;
        if !command.fits(words.len()) {
            return Err("ERR Wrong number of args calling Redis command from script".into());
        }
        self.clock_readings += usize::from(words[0].eq_ignore_ascii_case(b"time"));
        for key in &words[command.keys(words)] {
            if !self.declared.contains(key) && !self.undeclared.contains(key) {
                self.undeclared.push(key.clone());
            }
        }
        if command.writes() {
            self.may_write(command.needs_memory())?;
            self.server.dirty = true;
        }
        self.server.execute(command, words)
    }

    fn may_write(&self, needs_memory: bool) -> Result<(), Refusal> {
        if self.flags.no_writes {
            return Err("ERR Write commands are not allowed from read-only scripts.".into());
        }
        if self.server.role == Role::Replica {
            return Err(READONLY.into());
        }
        if self.server.lacks_replicas && !self.server.dirty {
            return Err(NO_REPLICAS.into());
        }
        // A script that has already written may continue, since stopping half-way would be worse.
        let judged = needs_memory && !self.server.dirty && !self.flags.allow_oom;
        if judged && self.memory_was_out {
            return Err(OUT_OF_MEMORY.into());
        }
        Ok(())
    }
}
