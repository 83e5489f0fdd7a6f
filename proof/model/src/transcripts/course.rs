//! Courses: short sequences of calls, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One step of a course.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// From now on, this many clients listen on a channel.
    Listen {
        /// Whether it is a sharded channel of a cluster.
        sharded: bool,
        /// Its name.
        channel: Vec<u8>,
        /// How many.
        count: usize,
    },
    /// A command of another client.
    Command(Vec<Vec<u8>>),
    /// This command of the next script, counted from 1, fails with this line.
    Fault(usize, String),
    /// A script runs at this time of the server, in µs.
    Call {
        /// Its name.
        script: String,
        /// The server's clock.
        clock: i64,
        /// `KEYS`.
        keys: Vec<Vec<u8>>,
        /// `ARGV`.
        arguments: Vec<Vec<u8>>,
    },
}

/// The steps on one server that is empty at first, and their outcomes, one line for each effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// The reason for this course.
    pub why: String,
    /// Whether the clock advances while a script runs, by a microsecond for each command.
    pub advances: bool,
    /// Each step with its outcome.
    pub steps: Vec<(Step, Vec<String>)>,
}

impl Course {
    /// The scripts that it calls.
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|(step, _)| match step {
            Step::Call { script, .. } => Some(script.as_str()),
            _ => None,
        })
    }
}

/// Abbreviations of a file, for words and for lists of keys.
#[derive(Debug, Default)]
struct Short {
    words: BTreeMap<String, String>,
    keys: BTreeMap<String, String>,
}

/// Text in quotes. An at sign starts an abbreviation, so it is escaped.
#[must_use]
pub fn quoted(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string().replace('@', "\\x40");
    format!("'{text}'")
}

fn all_quoted(words: &[Vec<u8>]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn unquoted(text: &str) -> Vec<Vec<u8>> {
    let mut rest = text.bytes();
    let mut words = Vec::new();
    while let Some(byte) = rest.next() {
        if byte == b' ' {
            continue;
        }
        assert_eq!(byte, b'\'', "{text}");
        let mut word = Vec::new();
        loop {
            match rest.next().expect(text) {
                b'\'' => break,
                b'\\' => word.push(match rest.next().expect(text) {
                    b'x' => {
                        let digits = [rest.next(), rest.next()].map(|digit| {
                            let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                            u8::try_from(digit.expect(text)).expect(text)
                        });
                        digits[0] << 4 | digits[1]
                    }
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'n' => b'\n',
                    other => other,
                }),
                other => word.push(other),
            }
        }
        words.push(word);
    }
    words
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Listen {
            sharded,
            channel,
            count,
        } => {
            let how = if *sharded { "sharded" } else { "plain" };
            format!("listen {how} {count} {}", quoted(channel))
        }
        Step::Command(words) => format!("command {}", all_quoted(words)),
        Step::Fault(at, line) => format!("fault {at} {line}"),
        Step::Call {
            script,
            clock,
            keys,
            arguments,
        } => format!(
            "call {script} {clock} {} | {}",
            all_quoted(keys),
            all_quoted(arguments)
        ),
    }
}

fn parsed_step(line: &str) -> Step {
    let (word, rest) = line.split_once(' ').expect(line);
    match word {
        "listen" => {
            let mut words = rest.splitn(3, ' ');
            let mut next = || words.next().expect(line);
            Step::Listen {
                sharded: next() == "sharded",
                count: next().parse().expect(line),
                channel: unquoted(next()).remove(0),
            }
        }
        "command" => Step::Command(unquoted(rest)),
        "fault" => {
            let (at, said) = rest.split_once(' ').expect(line);
            Step::Fault(at.parse().expect(line), said.to_owned())
        }
        "call" => {
            let mut words = rest.splitn(3, ' ');
            let mut next = || words.next().expect(line);
            let (script, clock) = (next().to_owned(), next().parse().expect(line));
            let (keys, arguments) = next().split_once('|').expect(line);
            Step::Call {
                script,
                clock,
                keys: unquoted(keys),
                arguments: unquoted(arguments),
            }
        }
        _ => panic!("this is no step: {line}"),
    }
}

/// Reads a file.
///
/// # Panics
///
/// If it is not a valid file.
#[must_use]
pub fn parse(text: &str) -> Vec<Course> {
    let mut short = Short::default();
    let mut courses: Vec<Course> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(word) = line.strip_prefix("word ") {
            let (name, long) = word.split_once(' ').expect(line);
            short.words.insert(name.to_owned(), long.to_owned());
        } else if let Some(keys) = line.strip_prefix("keys ") {
            let (name, long) = keys.split_once(' ').expect(line);
            short.keys.insert(name.to_owned(), short.long(long));
        } else if let Some(why) = line.strip_prefix("course ") {
            let (clock, why) = why.split_once(": ").expect(line);
            courses.push(Course {
                why: why.to_owned(),
                advances: clock == "advancing",
                steps: Vec::new(),
            });
        } else {
            let steps = &mut courses.last_mut().expect(line).steps;
            let line = short.long(line);
            match line.strip_prefix("    ") {
                Some(outcome) => steps.last_mut().expect(&line).1.push(outcome.to_owned()),
                None => steps.push((parsed_step(&line), Vec::new())),
            }
        }
    }
    courses
}

/// Writes a file.
#[must_use]
pub fn to_text(courses: &[Course]) -> String {
    let mut body = String::new();
    for course in courses {
        let clock = if course.advances {
            "advancing"
        } else {
            "frozen"
        };
        let _ = writeln!(body, "\ncourse {clock}: {}", course.why);
        for (step, outcome) in &course.steps {
            let _ = writeln!(body, "{}", step_text(step));
            for line in outcome {
                let _ = writeln!(body, "    {line}");
            }
        }
    }
    let short = Short::of(courses, &body);
    let mut head = "# See tests/transcripts.rs of locktopus-model.\n".to_owned();
    for (name, long) in &short.words {
        let _ = writeln!(head, "word {name} {long}");
    }
    for (name, long) in &short.keys {
        let _ = writeln!(head, "keys {name} {}", short.of_words(long));
    }
    for line in body.lines() {
        let _ = writeln!(head, "{}", short.short(line));
    }
    head
}

impl Short {
    /// Abbreviates lists of keys and long words that occur more than once.
    fn of(courses: &[Course], body: &str) -> Self {
        let mut lists: BTreeMap<String, usize> = BTreeMap::new();
        for (step, _) in courses.iter().flat_map(|course| &course.steps) {
            if let Step::Call { keys, .. } = step {
                *lists.entry(all_quoted(keys)).or_default() += 1;
            }
        }
        let mut words: BTreeMap<&str, usize> = BTreeMap::new();
        for word in body.split([' ', '\'', '\n', ',', '[', ']']) {
            // Owners, and inboxes of processes.
            if word.len() >= 30 && !word.contains('\\') && !word.contains('{') {
                *words.entry(word).or_default() += 1;
            }
        }
        let lists = lists.into_iter().filter(|(_, times)| *times > 1);
        let words = words.into_iter().filter(|(_, times)| *times > 1);
        Self {
            keys: lists
                .enumerate()
                .map(|(at, (list, _))| (format!("K{at}"), list))
                .collect(),
            words: words
                .enumerate()
                .map(|(at, (word, _))| (format!("@{at}"), word.to_owned()))
                .collect(),
        }
    }

    fn of_words(&self, text: &str) -> String {
        let mut shorter = String::new();
        let mut word = String::new();
        for char in text.chars().chain(['\n']) {
            if matches!(char, ' ' | '\'' | '\n' | ',' | '[' | ']') {
                let short = self.words.iter().find(|(_, long)| **long == word);
                shorter.push_str(short.map_or(&word, |(short, _)| short));
                word.clear();
                shorter.push(char);
            } else {
                word.push(char);
            }
        }
        shorter.pop();
        shorter
    }

    fn short(&self, line: &str) -> String {
        let mut line = line.to_owned();
        if line.starts_with("call ")
            && let Some((before, after)) = line.split_once(" | ")
        {
            let words: Vec<&str> = before.splitn(4, ' ').collect();
            let found = self
                .keys
                .iter()
                .find(|(_, list)| words.get(3) == Some(&list.as_str()));
            if let Some((name, _)) = found {
                line = format!("call {} {} {name} | {after}", words[1], words[2]);
            }
        }
        self.of_words(&line)
    }

    fn long(&self, line: &str) -> String {
        let mut longer = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('@') {
            let digits = after.find(|char: char| !char.is_ascii_digit());
            let (name, after) = after.split_at(digits.unwrap_or(after.len()));
            longer.push_str(before);
            longer.push_str(self.words.get(&format!("@{name}")).expect(line));
            rest = after;
        }
        longer.push_str(rest);
        if longer.starts_with("call ") {
            let mut words: Vec<&str> = longer.splitn(5, ' ').collect();
            if let Some(list) = words.get(3).and_then(|name| self.keys.get(*name)) {
                words[3] = list;
                return words.join(" ");
            }
        }
        longer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let owner = b"00000001-0001-8c70-a705-000000000000:4".to_vec();
        let odd: Vec<Vec<u8>> = vec![(0..=u8::MAX).collect(), b"".to_vec(), b"'a b@\\".to_vec()];
        let call = |arguments: &[Vec<u8>]| Step::Call {
            script: "lock_acquire".to_owned(),
            clock: 1_760_000_000_000_001,
            keys: vec![b"{it} b".to_vec(), owner.clone()],
            arguments: arguments.to_vec(),
        };
        let outcome = vec![
            format!("answers [1, '{}']", quoted(&owner)),
            "commands 3".to_owned(),
        ];
        let steps = vec![
            (
                Step::Listen {
                    sharded: true,
                    channel: b"a:{b} c".to_vec(),
                    count: 2,
                },
                Vec::new(),
            ),
            (Step::Command(odd.clone()), Vec::new()),
            (Step::Fault(3, "OOM no".to_owned()), Vec::new()),
            (call(&odd), outcome.clone()),
            (call(&[owner.clone(), owner.clone()]), outcome),
            (call(&[]), Vec::new()),
        ];
        let course = |advances| Course {
            why: "to see: it".to_owned(),
            advances,
            steps: steps.clone(),
        };
        let courses = vec![course(false), course(true)];
        let text = to_text(&courses);
        assert!(text.contains("@0") && text.contains("K0"), "{text}");
        assert_eq!(parse(&text), courses, "{text}");
    }
}
