//! Counts the lines of comments and pages that readers have to read twice.

use std::collections::BTreeMap;
use std::fs;

use regex_lite::Regex;

use crate::failure::{Done, fail};
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = "\
Checks that comments and pages are plain English, and that no comment is wider than 100 columns.

Usage: scripts/check-prose [FILE|FOLDER...]

Without arguments it counts the findings in all files and fails above the limit. With arguments it shows each finding. A finding
is a hint: fix the sentence, not the count.";

/// Findings allowed in 1,000 lines of prose.
const ALLOWED: usize = 15;
const TOO_WIDE: &str = "wider than 100 columns";
/// The widest comment, in columns.
const WIDE: usize = 100;
/// The longest sentence in one line, in words.
const LONG: usize = 28;
/// How many files the summary names.
const SHOWN: usize = 10;

/// The rules, as regular expressions.
const RULES: [(&str, &str); 8] = [
    (
        "a clause as the subject",
        r"(?:^|[.:;] )(?:Who|What|Whoever|Whatever|Where|That which)\s+([a-z]+)[^?.]*[.,]",
    ),
    (
        "whoever, whatever, nobody, somebody",
        r"(?i)\b(?:whoever|whatever|whichever|nobody|somebody|whosoever)\b",
    ),
    ("\"but for\" for \"except\"", r"(?i)\bbut (?:for|with|in|by) ([a-z]*)"),
    (
        "those who",
        r"(?i)\b(?:those|one|ones|he|they) (?:who|that) (?:has|have|is|are|was|wait|ask|hold|want|read|write|hear|listen)\b",
    ),
    ("of which, for whom", r"(?i)\b(?:of|for|by|to|from|under|in|on|with) (?:which|whom)\b"),
    (
        "a passive without an agent",
        r"(?i)\b(?:is|are|was|were|be|been) (?:told|asked|heard|found out|looked at|seen to|thrown away|said|handed|spoken)\b",
    ),
    (
        "as it comes, by itself, in the way",
        r"(?i)\b(?:as it comes|by itself|by themselves|in the way|stands? beside|goes on|at length|to the last|comes to nothing)\b",
    ),
    ("a double negation", r"(?i)\bnot (?:un|in)[a-z]+\b|\bno[a-z]* [a-z ]{0,20}\bnot\b"),
];

/// A match before one of these words does not count: questions, and "but for example".
const FINE_AFTER: [&str; 9] =
    ["is", "are", "to", "it", "this", "example", "now", "examples", "nowadays"];

/// A line to mend.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    why: &'static str,
    text: String,
}

/// The rules, ready to be used.
struct Reader {
    rules: Vec<(&'static str, Regex)>,
    code: Regex,
}

impl Reader {
    fn new() -> Done<Self> {
        let rules = RULES.iter().map(|(why, rule)| Ok((*why, Regex::new(rule)?)));
        Ok(Self { rules: rules.collect::<Done<_>>()?, code: Regex::new(r"`[^`]*`|\]\([^)]*\)")? })
    }

    /// The findings of a file, and its number of lines of prose.
    fn read(&self, path: &str, text: &str) -> (Vec<Finding>, usize) {
        let (mut findings, mut prose, mut in_code) = (Vec::new(), 0, false);
        for (index, whole) in text.lines().enumerate() {
            let Some(said) = said(path, whole) else {
                in_code &= path.ends_with(".md");
                continue;
            };
            if said.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code && !said.trim().is_empty() {
                prose += 1;
                let wide = !path.ends_with(".md") && whole.chars().count() > WIDE;
                let text = said.trim();
                let whys = self.whys(text).into_iter().chain(wide.then_some(TOO_WIDE));
                findings.extend(whys.map(|why| Finding {
                    line: index + 1,
                    why,
                    text: text.to_owned(),
                }));
            }
        }
        (findings, prose)
    }

    fn whys(&self, text: &str) -> Vec<&'static str> {
        let text = self.code.replace_all(text, "x");
        let broken = self.rules.iter().filter(|(_, rule)| breaks(rule, &text));
        let mut whys: Vec<_> = broken.map(|(why, _)| *why).collect();
        // A cell of a table is a sentence too.
        let mut sentences = text.split(['.', '!', '?', ';', ':', '|']);
        if sentences.any(|sentence| sentence.split_whitespace().count() > LONG) {
            whys.push("a sentence of more than 28 words");
        }
        whys
    }
}

fn breaks(rule: &Regex, text: &str) -> bool {
    rule.captures_iter(text).any(|found| {
        let next = found.get(1).map_or("", |word| word.as_str());
        !FINE_AFTER.contains(&next)
    })
}

/// The text of a line, if it is a comment or the line of a page.
fn said<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let marks: &[&str] = match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "md" => return Some(line),
        "rs" => &["///", "//!", "//"],
        "lua" => &["--"],
        _ => &["#"],
    };
    let line = line.trim_start();
    marks.iter().find_map(|mark| line.strip_prefix(mark))
}

pub(crate) fn main(sh: &Shell, paths: &[String]) -> Done {
    let reader = Reader::new()?;
    let listed = sh.cmd("git").arg("ls-files").arg("--").args(paths).read()?;
    let files = listed
        .lines()
        .filter(|file| [".rs", ".lua", ".sh", ".md"].iter().any(|end| file.ends_with(end)));
    let (mut all, mut prose) = (BTreeMap::new(), 0);
    for file in files {
        // git still lists a file that is deleted but not committed.
        let Ok(text) = fs::read_to_string(sh.root.join(file)) else { continue };
        let (found, lines) = reader.read(file, &text);
        prose += lines;
        if !found.is_empty() {
            all.insert(file.to_owned(), found);
        }
    }
    if !paths.is_empty() {
        for (file, found) in &all {
            for Finding { line, why, text } in found {
                say(format!("{file}:{line}: {why}: {text}"));
            }
        }
    }
    judge(&all, prose)
}

fn judge(all: &BTreeMap<String, Vec<Finding>>, prose: usize) -> Done {
    let found: usize = all.values().map(Vec::len).sum();
    let told = format!("{prose} lines of prose, {found} findings, {ALLOWED} in 1,000 allowed");
    let mut wide = String::new();
    for (file, found) in all {
        for Finding { line, .. } in found.iter().filter(|finding| finding.why == TOO_WIDE) {
            wide.push_str(&format!("\n{file}:{line}: {TOO_WIDE}"));
        }
    }
    if prose == 0 {
        fail!("no prose was found");
    }
    if found * 1_000 <= prose * ALLOWED && wide.is_empty() {
        say(told);
        return Ok(());
    }
    let mut worst: Vec<_> = all.iter().map(|(file, found)| (found.len(), file)).collect();
    worst.sort_by(|one, other| other.cmp(one));
    let worst = worst.iter().take(SHOWN).map(|(count, file)| format!("\n  {count:4} {file}"));
    let worst: String = worst.collect();
    fail!("{told}; see scripts/check-prose FILE\n{wide}\n{worst}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whys(path: &str, text: &str) -> Vec<&'static str> {
        let found = Reader::new().unwrap().read(path, text).0;
        found.into_iter().map(|finding| finding.why).collect()
    }

    /// Every rule finds one line, and lets a plain one beside it pass.
    #[test]
    fn each_rule_finds_its_own() {
        let lines = [
            ("Who waits, waits in a queue.", "Waiters queue. What is a lease?"),
            ("It is free for whoever asks.", "It is free for any caller."),
            ("Ordered, but for readers.", "Ordered, but for example not here."),
            ("It goes to those who wait.", "It goes to the waiters."),
            ("The key under which it is.", "The key that has it."),
            ("The caller is told.", "The server tells the caller."),
            ("The lock ends by itself.", "The lock expires."),
            ("It is not unusual.", "It is usual."),
        ];
        for ((bad, plain), (why, _)) in lines.into_iter().zip(RULES) {
            assert_eq!(whys("a.md", bad), [why], "{bad}");
            assert!(whys("a.md", plain).is_empty(), "{plain}");
        }
    }

    #[test]
    fn long_sentences_and_wide_comments_are_found() {
        let long = "word ".repeat(LONG + 1);
        assert_eq!(whys("a.md", &long), ["a sentence of more than 28 words"]);
        let wide = format!("// {}", "letters".repeat(20));
        assert_eq!(whys("a.rs", &wide), ["wider than 100 columns"]);
        assert!(whys("a.rs", &wide[3..]).is_empty(), "code");
    }

    #[test]
    fn code_is_no_prose() {
        assert!(whys("a.md", "```\nnobody\n```\n`nobody`, [x](nobody)").is_empty());
        assert!(whys("a.rs", "/// ```\n/// nobody();\n/// ```\nnobody();").is_empty());
        assert_eq!(whys("a.rs", "/// ```\nfn a() {}\n/// nobody").len(), 1);
        assert_eq!(whys("a.lua", "-- nobody\nnobody()").len(), 1);
    }

    #[test]
    fn too_many_findings_fail() {
        let one = |why| vec![Finding { line: 1, why, text: String::new() }];
        let all = |why| BTreeMap::from([("a.rs".to_owned(), one(why))]);
        assert!(judge(&all("those who"), 100).is_ok());
        let error = judge(&all("those who"), 10).unwrap_err();
        assert!(crate::made_up::said(Err::<(), _>(error)).contains("a.rs"));
        let wide = judge(&all(TOO_WIDE), 100_000).unwrap_err();
        assert!(crate::made_up::said(Err::<(), _>(wide)).contains("a.rs:1: wider"));
        assert!(judge(&BTreeMap::new(), 0).is_err());
    }
}
