//! The steps for both servers: calls of scripts, commands, and time that passes. A failing list can
//! be saved as text and run again.

use std::fmt::Write as _;

use locktopus_protocol::scripts;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A script runs and sees this time, in µs.
    Call {
        script: usize,
        keys: Vec<Vec<u8>>,
        arguments: Vec<Vec<u8>>,
        clock: i64,
    },
    /// A command of another client.
    Command(Vec<Vec<u8>>),
    /// So many milliseconds pass.
    Lapse(i64),
}

/// A client that listens on a channel during the whole list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listening {
    pub(crate) client: usize,
    pub(crate) sharded: bool,
    pub(crate) channel: Vec<u8>,
}

/// Everything that must be the same for a list of steps to end the same way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Course {
    /// The replication id that the clients have seen.
    pub(crate) replid: String,
    pub(crate) listening: Vec<Listening>,
    pub(crate) steps: Vec<Step>,
}

/// A shipped text and its names: some kinds share a script.
#[derive(Debug)]
pub(crate) struct Shipped {
    pub(crate) names: Vec<&'static str>,
    pub(crate) digest: &'static str,
    pub(crate) source: &'static str,
}

/// Every shipped script, once for each text.
pub(crate) fn shipped() -> Vec<Shipped> {
    let mut texts: Vec<Shipped> = Vec::new();
    for script in scripts::all() {
        match texts.iter_mut().find(|text| text.source == script.source) {
            Some(text) => text.names.push(script.name),
            None => texts.push(Shipped {
                names: vec![script.name],
                digest: script.digest(),
                source: script.source,
            }),
        }
    }
    texts
}

fn add(line: &mut String, words: &[Vec<u8>]) {
    for word in words {
        let word = word.escape_ascii().to_string().replace(' ', "\\x20");
        let _ = write!(line, " '{word}'");
    }
}

impl Course {
    /// Writes a line for each step, which [`parse`](Self::parse) reads.
    pub(crate) fn to_text(&self, texts: &[Shipped]) -> String {
        let mut text = format!("replid {}\n", self.replid);
        for listening in &self.listening {
            let how = if listening.sharded {
                "sharded"
            } else {
                "plain"
            };
            let _ = write!(text, "listen {} {how}", listening.client);
            add(&mut text, std::slice::from_ref(&listening.channel));
            text.push('\n');
        }
        for step in &self.steps {
            match step {
                Step::Call {
                    script,
                    keys,
                    arguments,
                    clock,
                } => {
                    let name = texts[*script].names[0];
                    let _ = write!(text, "call {name} {clock} {}", keys.len());
                    add(&mut text, keys);
                    add(&mut text, arguments);
                }
                Step::Command(words) => {
                    text.push_str("command");
                    add(&mut text, words);
                }
                Step::Lapse(millis) => {
                    let _ = write!(text, "lapse {millis}");
                }
            }
            text.push('\n');
        }
        text
    }

    /// Reads the output of [`to_text`](Self::to_text). It ignores empty lines and those that begin
    /// with `#`.
    pub(crate) fn parse(text: &str, texts: &[Shipped]) -> Self {
        let mut course = Self::default();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let bytes = |from: usize| words[from..].iter().map(|word| unescaped(word)).collect();
            match words[0] {
                "replid" => words[1].clone_into(&mut course.replid),
                "listen" => course.listening.push(Listening {
                    client: words[1].parse().expect(line),
                    sharded: words[2] == "sharded",
                    channel: unescaped(words[3]),
                }),
                "call" => {
                    let named = |text: &Shipped| text.names.contains(&words[1]);
                    let count: usize = words[3].parse().expect(line);
                    let mut keys: Vec<Vec<u8>> = bytes(4);
                    let arguments = keys.split_off(count);
                    course.steps.push(Step::Call {
                        script: texts.iter().position(named).expect(line),
                        keys,
                        arguments,
                        clock: words[2].parse().expect(line),
                    });
                }
                "command" => course.steps.push(Step::Command(bytes(1))),
                "lapse" => course
                    .steps
                    .push(Step::Lapse(words[1].parse().expect(line))),
                other => panic!("{other:?} is no step: {line}"),
            }
        }
        course
    }

    /// The same course for servers with another replication id.
    pub(crate) fn on(mut self, replid: &str) -> Self {
        let (old, new) = (self.replid.clone().into_bytes(), replid.as_bytes());
        let change = |words: &mut Vec<Vec<u8>>| {
            for word in words.iter_mut().filter(|word| word.starts_with(&old)) {
                *word = [new, &word[old.len()..]].concat();
            }
        };
        if !old.is_empty() {
            for step in &mut self.steps {
                match step {
                    Step::Call { arguments, .. } => change(arguments),
                    Step::Command(words) => change(words),
                    Step::Lapse(_) => {}
                }
            }
        }
        replid.clone_into(&mut self.replid);
        self
    }
}

fn unescaped(word: &str) -> Vec<u8> {
    let quoted = word.strip_prefix('\'').and_then(|w| w.strip_suffix('\''));
    let mut rest = quoted.expect(word).bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(|digit| {
                    let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                    u8::try_from(digit.expect(word)).expect(word)
                });
                digits[0] << 4 | digits[1]
            }
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            other => other.expect(word),
        });
    }
    bytes
}

#[test]
fn a_list_of_steps_is_read_as_it_was_written() {
    let texts = shipped();
    let odd = vec![(0..=u8::MAX).collect(), b"".to_vec(), b"'a b\\".to_vec()];
    let course = Course {
        replid: "5f".repeat(20),
        listening: vec![Listening {
            client: 2,
            sharded: true,
            channel: b"a:{b} c".to_vec(),
        }],
        steps: vec![
            Step::Call {
                script: texts.len() - 1,
                keys: vec![b"it".to_vec()],
                arguments: odd.clone(),
                clock: 1_760_000_000_000_001,
            },
            Step::Command(odd),
            Step::Lapse(35_000),
        ],
    };
    assert_eq!(Course::parse(&course.to_text(&texts), &texts), course);
    // A restarted server has another id, and arguments begin with that id.
    let seen = |replid: &str| {
        let words = vec![b"x".to_vec(), format!("{replid}=7").into_bytes()];
        Course {
            replid: replid.to_owned(),
            listening: Vec::new(),
            steps: vec![Step::Command(words)],
        }
    };
    assert_eq!(seen("0a").on("77"), seen("77"));
}
