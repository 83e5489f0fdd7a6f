//! Puts mutants of a file into its text beside what they change, so that one build has them all and a number chooses.
//!
//! What cannot stand there is left out, and is built by itself: constants, which nothing can choose while a program runs; parts of
//! a `let` chain; functions that hide their type, of which two have two types; an operator that binds less than the one
//! it replaces, where that changes what its neighbours apply to; fields that are left out of a struct.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Arm, Block, Expr, ExprBinary, Signature};

use crate::mutant::Mutant;
use crate::text::{Place, bytes};

/// The module that is put into the crate.
pub(crate) const CHOOSER: &str = "
mod woven_mutants {
    pub(crate) fn on(number: usize) -> bool {
        static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let read = || std::env::var(\"LOCKTOPUS_MUTANT\").map_or(0, |chosen| chosen.parse().unwrap());
        number == *CHOSEN.get_or_init(read)
    }
}
";

/// A file with mutants in it.
#[derive(Debug)]
pub(crate) struct Woven {
    pub(crate) text: String,
    /// On which lines of the text each mutant is, first and last, by its number.
    pub(crate) lines: BTreeMap<usize, (usize, usize)>,
}

/// Puts these mutants into the text of their file.
pub(crate) fn weave(source: &str, mutants: &[&Mutant]) -> Result<Woven, String> {
    let tree = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut finder = Finder {
        source,
        mutants,
        nodes: Vec::new(),
        under_operator: false,
    };
    finder.visit_file(&tree);
    let mut nodes = finder.nodes;
    // What contains another comes before it; what is only inserted stands before what begins there.
    nodes.sort_by_key(|node| {
        let Range { start, end } = node.range;
        (start, start != end, std::cmp::Reverse(end))
    });
    let text = emit(source, 0..source.len(), &nodes);
    let lines = lines(&text);
    Ok(Woven { text, lines })
}

/// A part of the text, and what is there instead.
struct Node {
    range: Range<usize>,
    change: Change,
}

enum Change {
    /// Numbers of mutants of an expression, and what each is.
    Expression(Vec<(usize, String)>),
    /// Numbers of mutants of a function, and what each returns at once.
    Return(Vec<(usize, String)>),
    /// An arm that is not there, and whether it has a guard: then the range is the guard's.
    Arm(usize, bool),
}

fn on(number: usize) -> String {
    format!("crate::woven_mutants::on({number})")
}

/// Between marks and on lines of its own.
fn marked(number: usize, text: &str) -> String {
    format!("\n/*<{number}*/{text}/*{number}>*/\n")
}

fn lines(text: &str) -> BTreeMap<usize, (usize, usize)> {
    let mut found = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(number) = text
            .strip_prefix("/*<")
            .and_then(|rest| rest.split_once("*/"))
        {
            let number = number.0.parse().unwrap_or_default();
            found.insert(number, (line, line));
        }
        let end = text
            .strip_suffix(">*/")
            .and_then(|rest| rest.rsplit_once("/*"));
        if let Some(range) = end.and_then(|(_, number)| found.get_mut(&number.parse().ok()?)) {
            range.1 = line;
        }
    }
    found
}

impl Change {
    fn around(&self, inner: &str) -> String {
        match self {
            Self::Expression(mutants) => {
                let instead = mutants.iter().map(|(number, text)| {
                    marked(*number, &format!("if {} {{ {text} }} else", on(*number)))
                });
                format!("({}{{ {inner} }})", instead.collect::<String>())
            }
            Self::Return(mutants) => mutants
                .iter()
                .map(|(number, text)| {
                    marked(*number, &format!("if {} {{ return {text}; }}", on(*number)))
                })
                .collect(),
            Self::Arm(number, false) => marked(*number, &format!("if !{}", on(*number))),
            Self::Arm(number, true) => {
                format!(
                    "{} && ({inner})",
                    marked(*number, &format!("!{}", on(*number)))
                )
            }
        }
    }
}

/// A part of the text with these nodes in it.
fn emit(source: &str, range: Range<usize>, mut nodes: &[Node]) -> String {
    let (mut text, mut at) = (String::new(), range.start);
    while let [node, rest @ ..] = nodes {
        let Range { start, end } = node.range;
        let inside = rest
            .iter()
            .take_while(|inner| inner.range.start < end)
            .count();
        text += &source[at..start];
        text += &node
            .change
            .around(&emit(source, start..end, &rest[..inside]));
        (at, nodes) = (end, &rest[inside..]);
    }
    text + &source[at..range.end]
}

/// How much an operator binds.
fn binds(operator: &str) -> u8 {
    match operator {
        "*" | "/" | "%" => 9,
        "+" | "-" => 8,
        "<<" | ">>" => 7,
        "&" => 6,
        "^" => 5,
        "|" => 4,
        "==" | "!=" | "<" | ">" | "<=" | ">=" => 3,
        "&&" => 2,
        "||" => 1,
        _ => 0,
    }
}

/// Whether a condition takes something apart.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}

struct Finder<'a> {
    source: &'a str,
    mutants: &'a [&'a Mutant],
    nodes: Vec<Node>,
    /// Whether the next expression is an operand.
    under_operator: bool,
}

impl Finder<'_> {
    /// Those of a kind that begin where this does.
    fn at(&self, genre: &str, span: proc_macro2::Span) -> Vec<&Mutant> {
        let place = Place::from(span.start());
        let here = |mutant: &&&Mutant| mutant.genre == genre && mutant.range.0 == place;
        self.mutants.iter().filter(here).copied().collect()
    }

    fn expression(&mut self, range: Range<usize>, instead: Vec<(usize, String)>) {
        if !instead.is_empty() {
            let change = Change::Expression(instead);
            self.nodes.push(Node { range, change });
        }
    }

    fn function(&mut self, signature: &Signature, block: &Block) -> bool {
        if signature.constness.is_some() {
            return false;
        }
        if let Some(first) = block.stmts.first() {
            let mutants = self.at("FnValue", first.span());
            let known = mutants
                .iter()
                .filter(|mutant| !mutant.returns.contains("impl "));
            let returns: Vec<_> = known.map(|m| (m.number, m.replacement.clone())).collect();
            let at = bytes(self.source, first.span()).start;
            if !returns.is_empty() {
                let change = Change::Return(returns);
                self.nodes.push(Node {
                    range: at..at,
                    change,
                });
            }
        }
        true
    }

    fn binary(&mut self, both: &ExprBinary, under_operator: bool) {
        if !has_let(&both.left) && !has_let(&both.right) {
            let operator = bytes(self.source, both.op.span());
            let range = bytes(self.source, both.left.span()).start
                ..bytes(self.source, both.right.span()).end;
            let before = binds(&self.source[operator.clone()]);
            let kept = |mutant: &&&Mutant| !under_operator || binds(&mutant.replacement) >= before;
            let instead = |mutant: &&Mutant| {
                let (left, right) = (range.start..operator.start, operator.end..range.end);
                let (left, right) = (&self.source[left], &self.source[right]);
                (
                    mutant.number,
                    format!("{left}{}{right}", mutant.replacement),
                )
            };
            let mutants = self.at("BinaryOperator", both.op.span());
            let instead = mutants.iter().filter(kept).map(instead).collect();
            self.expression(range, instead);
        }
        for operand in [&both.left, &both.right] {
            self.under_operator = true;
            self.visit_expr(operand);
        }
        self.under_operator = false;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let Some(block) = &item.default else { return };
        if self.function(&item.sig, block) {
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let under_operator = std::mem::take(&mut self.under_operator);
        match expression {
            Expr::Binary(both) => self.binary(both, under_operator),
            Expr::Unary(one) => {
                let operand = self.source[bytes(self.source, one.expr.span())].to_owned();
                let mutants = self.at("UnaryOperator", one.op.span());
                let instead = mutants.iter().map(|m| (m.number, operand.clone()));
                let instead = instead.collect();
                self.expression(bytes(self.source, one.span()), instead);
                visit::visit_expr(self, expression);
            }
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard);
        if let [mutant] = self.at("MatchArm", arm.pat.span())[..] {
            let end = bytes(self.source, arm.pat.span()).end;
            let range = guard.map_or(end..end, |guard| bytes(self.source, guard.span()));
            let change = Change::Arm(mutant.number, guard.is_some());
            self.nodes.push(Node { range, change });
        }
        if let Some(guard) = guard.filter(|guard| !has_let(guard)) {
            let mutants = self.at("MatchArmGuard", guard.span());
            let instead = mutants.iter().map(|m| (m.number, m.replacement.clone()));
            let instead = instead.collect();
            self.expression(bytes(self.source, guard.span()), instead);
        }
        visit::visit_arm(self, arm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant of the first place where this text is.
    fn mutant(number: usize, source: &str, genre: &str, at: &str, replacement: &str) -> Mutant {
        let start = source.find(at).unwrap();
        let place = |byte: usize| Place {
            line: source[..byte].matches('\n').count() + 1,
            column: byte - source[..byte].rfind('\n').map_or(0, |end| end + 1) + 1,
        };
        Mutant {
            number,
            file: String::new(),
            name: String::new(),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            range: (place(start), place(start + at.len())),
            function: None,
            returns: String::new(),
        }
    }

    /// What is chosen by this number, or the original by 0, on one line.
    fn chosen(woven: &Woven, number: usize) -> String {
        let mut text = woven.text.replace('\n', " ");
        for other in 1..10 {
            let on = if other == number { "true" } else { "false" };
            text = text.replace(&super::on(other), on);
            text = text.replace(&format!("/*<{other}*/"), "");
            text = text.replace(&format!("/*{other}>*/"), "");
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_mutant_stands_beside_what_it_changes() {
        let source = "fn f(a: u8) -> u8 {\n    g(a + 1 < 2 && !b);\n    match a { 1 if c == d => e, 2 => f, _ => g }\n}\n";
        let mutants = [
            mutant(1, source, "FnValue", "g(a + 1", "0"),
            mutant(2, source, "BinaryOperator", "<", ">"),
            mutant(3, source, "BinaryOperator", "<", "=="),
            mutant(4, source, "UnaryOperator", "!", ""),
            mutant(5, source, "MatchArm", "1 if", ""),
            mutant(6, source, "MatchArmGuard", "c == d", "true"),
            mutant(7, source, "MatchArm", "2 => f", ""),
            mutant(8, source, "BinaryOperator", "&&", "||"),
        ];
        let woven = weave(source, &mutants.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            woven.lines.keys().copied().collect::<Vec<_>>(),
            (1..=8).collect::<Vec<_>>()
        );
        for (number, (first, last)) in &woven.lines {
            let lines: Vec<_> = woven.text.lines().collect();
            let text = lines[first - 1..*last].join("\n");
            assert!(text.starts_with(&format!("/*<{number}*/")), "{text}");
            assert!(text.ends_with(&format!("/*{number}>*/")), "{text}");
        }
        let none = chosen(&woven, 0);
        for (number, there) in [
            (1, "if true { return 0; }"),
            (
                2,
                "( if true { a + 1 > 2 } else if false { a + 1 == 2 } else { a + 1 < 2 })",
            ),
            (
                3,
                "( if false { a + 1 > 2 } else if true { a + 1 == 2 } else { a + 1 < 2 })",
            ),
            (4, "( if true { b } else { !b })"),
            (
                5,
                "1 if !true && (( if false { true } else { c == d })) => e",
            ),
            (
                6,
                "1 if !false && (( if true { true } else { c == d })) => e",
            ),
            (7, "2 if !true => f"),
            (8, "( if true { a + 1 < 2 || !b } else {"),
        ] {
            let text = chosen(&woven, number);
            assert!(text.contains(there), "{number}: {text}");
            assert!(!none.contains(there), "{number}: {none}");
        }
    }

    #[test]
    fn what_nothing_can_choose_is_left_out() {
        for (source, at, instead) in [
            ("const A: u8 = 1 + 2;", "+", "-"),
            ("const fn f() -> u8 { 1 + 2 }", "+", "-"),
            ("fn f() { if let Some(a) = b && c {} }", "&&", "||"),
            // `a - b + c` is not `a - (b + c)`.
            ("fn f() { a - b * c }", "*", "+"),
        ] {
            let mutant = mutant(1, source, "BinaryOperator", at, instead);
            let woven = weave(source, &[&mutant]).unwrap();
            assert_eq!((woven.text.as_str(), woven.lines.len()), (source, 0));
        }
        let source = "fn f() { a - b * c }";
        let mutant = mutant(1, source, "BinaryOperator", "*", "/");
        assert_eq!(weave(source, &[&mutant]).unwrap().lines.len(), 1);
    }
}
