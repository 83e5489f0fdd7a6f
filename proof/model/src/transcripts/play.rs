//! Plays a course on a modelled server of its own, and records the outcome of each step.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use locktopus_protocol::scripts;

use super::course::{Course, Step, quoted};
use crate::lua::{Interpreter, Program};
use crate::redis::{Reply, ScriptTime, Server, Value};

/// The replication id that clients of quarantine have seen.
pub const REPLID: &str = "5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f";

/// The scripts by name. Each is loaded at its first call, and keeps the text it has then.
#[derive(Debug)]
pub struct Scripts {
    lua: Interpreter,
    programs: RefCell<HashMap<String, Result<Program, String>>>,
}

impl Default for Scripts {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripts {
    /// No script is loaded yet.
    ///
    /// # Panics
    ///
    /// If Lua does not start.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lua: Interpreter::new().expect("an embedded Lua starts"),
            programs: RefCell::default(),
        }
    }

    fn program(&self, name: &str) -> Result<Program, String> {
        if let Some(known) = self.programs.borrow().get(name) {
            return known.clone();
        }
        let script = scripts::all().find(|script| script.name == name);
        let source = script.expect(name).source;
        let program = self.lua.load(source).map_err(|lacking| lacking.to_string());
        let mut programs = self.programs.borrow_mut();
        programs.insert(name.to_owned(), program.clone());
        program
    }
}

/// The keys of a server, each with its value as a line.
type Picture = BTreeMap<Vec<u8>, String>;

/// The server that a course plays on.
#[derive(Debug)]
struct Stage {
    server: Server,
}

impl Stage {
    fn new(course: &Course) -> Self {
        let mut server = Server::default();
        REPLID.clone_into(&mut server.replid);
        server.script_time = if course.advances {
            ScriptTime::Advances(1)
        } else {
            ScriptTime::Frozen
        };
        Self { server }
    }

    /// Plays a step, and returns its outcome.
    fn play(&mut self, scripts: &Scripts, step: &Step) -> Vec<String> {
        match step {
            Step::Listen {
                sharded,
                channel,
                count,
            } => {
                let topic = (*sharded, channel.clone());
                self.server.listeners.insert(topic, *count);
                Vec::new()
            }
            Step::Command(words) => {
                let lacking = self.server.command(words).err();
                lacking.iter().map(ToString::to_string).collect()
            }
            Step::Fault(at, line) => {
                self.server.script_fault = Some((*at, line.clone()));
                Vec::new()
            }
            Step::Call {
                script,
                clock,
                keys,
                arguments,
            } => {
                self.server.clock = *clock;
                self.call(scripts, script, keys, arguments)
            }
        }
    }

    fn call(
        &mut self,
        scripts: &Scripts,
        script: &str,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
    ) -> Vec<String> {
        let program = match scripts.program(script) {
            Ok(program) => program,
            Err(lacking) => return vec![lacking],
        };
        // Keys that expired before the script are not its doing.
        let begun = self.server.now();
        let before = picture(&self.server, begun);
        let evaluation = scripts
            .lua
            .eval(&mut self.server, &program, keys, arguments);
        // A fault that met no command ends here too.
        self.server.script_fault = None;
        let evaluation = match evaluation {
            Ok(evaluation) => evaluation,
            Err(lacking) => return vec![lacking.to_string()],
        };
        let mut lines = vec![format!("answers {}", reply_text(&evaluation.reply))];
        for said in self.server.take_published() {
            let how = if said.sharded {
                "spublishes"
            } else {
                "publishes"
            };
            lines.push(format!(
                "{how} {} {}, heard by {}",
                quoted(&said.channel),
                quoted(&said.message),
                said.receivers
            ));
        }
        let after = picture(&self.server, begun);
        for (key, line) in &after {
            if before.get(key) != Some(line) {
                lines.push(format!("keeps {} {line}", quoted(key)));
            }
        }
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            lines.push(format!("removes {}", quoted(key)));
        }
        for key in &evaluation.undeclared {
            lines.push(format!("touches {}", quoted(key)));
        }
        lines.push(format!("runs {} commands", evaluation.commands));
        lines
    }
}

/// Plays a whole course with the current scripts, and records the outcomes.
pub fn record(course: &mut Course, scripts: &Scripts) {
    let mut stage = Stage::new(course);
    for (step, outcome) in &mut course.steps {
        *outcome = stage.play(scripts, step);
    }
}

/// The first step with another outcome than recorded, and that outcome.
#[must_use]
pub fn parting(course: &Course, scripts: &Scripts) -> Option<(usize, Vec<String>)> {
    let mut stage = Stage::new(course);
    course
        .steps
        .iter()
        .enumerate()
        .find_map(|(at, (step, outcome))| {
            let lines = stage.play(scripts, step);
            (lines != *outcome).then_some((at, lines))
        })
}

/// The remaining time of each key counts from when the script began.
fn picture(server: &Server, begun: i64) -> Picture {
    let keys = server.keys.iter(server.now());
    let keys = keys.map(|(key, entry)| {
        let end = entry.expires_at.map_or_else(
            || "for ever".to_owned(),
            |at| format!("for {} ms", at - begun),
        );
        (key.to_vec(), format!("{} {end}", value_text(&entry.value)))
    });
    keys.collect()
}

fn value_text(value: &Value) -> String {
    let items: Vec<String> = match value {
        Value::Text(text) => return format!("string {}", quoted(text)),
        Value::Hash(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| format!("{} {}", quoted(name), quoted(value)))
                .collect()
        }
        Value::List(items) => items.iter().map(|item| quoted(item)).collect(),
        Value::Set(members) => members.iter().map(|member| quoted(member)).collect(),
        Value::Sorted(members) => {
            let members = members.iter();
            members
                .map(|(score, member)| format!("{score} {}", quoted(member)))
                .collect()
        }
    };
    format!("{} [{}]", value.type_name(), items.join(", "))
}

fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Nil => "nothing".to_owned(),
        Reply::Int(number) => number.to_string(),
        Reply::Bulk(bytes) => quoted(bytes),
        Reply::Status(line) => format!("+{line}"),
        // The place in the script says nothing, and changes with every line of a comment.
        Reply::Error(line) if line.contains("user_script") => "error of the script".to_owned(),
        Reply::Error(line) => format!("error {line}"),
        Reply::Array(items) => {
            let items: Vec<_> = items.iter().map(reply_text).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
