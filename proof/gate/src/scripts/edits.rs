//! Every small change of a text in Lua, from its syntax tree.
//!
//! Two changes never change anything, so they are left out. A bare `return` could become `return
//! nil`: both give nil wherever one value or a fixed number of values is wanted, and no script
//! counts values. And `tonumber(x or '')` could become `tonumber(x or '~')`: neither text is a
//! number, so both give nil.

use std::ops::Range;

use tree_sitter::{Node, Parser};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// The bytes to replace.
    pub range: Span,
    /// Their replacement.
    pub after: String,
    /// The kind of change.
    pub operator: &'static str,
}

/// The first byte, and the one after the last.
pub type Span = (usize, usize);

/// Every change of this text.
///
/// # Errors
///
/// If the text is not Lua.
pub fn edits(source: &str) -> Result<Vec<Edit>, String> {
    // The line with a script's flags is not Lua.
    let body: String = match source.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => {
            format!("{}\n{rest}", "-".repeat(first.len()))
        }
        _ => source.to_owned(),
    };
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_lua::LANGUAGE.into())
        .map_err(|error| error.to_string())?;
    let tree = parser.parse(&body, None).ok_or("the parser gave up")?;
    if tree.root_node().has_error() {
        return Err("this is not Lua".to_owned());
    }
    let mut found = Finder {
        source: &body,
        edits: Vec::new(),
    };
    found.visit(tree.root_node());
    found.edits.sort();
    found
        .edits
        .dedup_by(|a, b| a.range == b.range && a.after == b.after);
    Ok(found.edits)
}

struct Finder<'a> {
    source: &'a str,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn visit(&mut self, node: Node<'_>) {
        match node.kind() {
            "assignment_statement" if !is_local(node) => self.remove(node, "statement removed"),
            "function_call" if is_statement(node) => self.remove(node, "statement removed"),
            "break_statement" => self.remove(node, "statement removed"),
            "variable_declaration" => self.forget_value(node),
            "return_statement" => self.returned(node),
            "if_statement" | "elseif_statement" | "while_statement" | "repeat_statement" => {
                self.condition(node);
            }
            "binary_expression" => self.operator(node),
            "unary_expression" => self.unary(node),
            "number" => self.number(node),
            "string" => self.string(node),
            "true" => self.replace(node.byte_range(), "false", "constant"),
            "false" => self.replace(node.byte_range(), "true", "constant"),
            "arguments" => self.arguments(node),
            "table_constructor" => self.elements(node),
            _ => {}
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child);
        }
    }

    fn text(&self, node: Node<'_>) -> &str {
        &self.source[node.byte_range()]
    }

    fn replace(&mut self, range: Range<usize>, after: impl Into<String>, operator: &'static str) {
        let after = after.into();
        if self.source[range.clone()] != after {
            self.edits.push(Edit {
                range: (range.start, range.end),
                after,
                operator,
            });
        }
    }

    fn remove(&mut self, node: Node<'_>, operator: &'static str) {
        self.replace(node.byte_range(), "", operator);
    }

    /// `local a, b = c, d` becomes `local a, b`.
    fn forget_value(&mut self, node: Node<'_>) {
        let Some(assignment) = children(node).find(|it| it.kind() == "assignment_statement") else {
            return;
        };
        let equals = children(assignment).find(|it| it.kind() == "=");
        if let Some(equals) = equals {
            self.replace(equals.start_byte()..node.end_byte(), "", "value forgotten");
        }
    }

    fn returned(&mut self, node: Node<'_>) {
        // The last statement of a function or script would leave its result: nothing.
        self.remove(node, "statement removed");
        let end = node.start_byte() + "return".len();
        if named(node).next().is_some() {
            self.replace(end..node.end_byte(), " nil", "value forgotten");
        }
    }

    fn condition(&mut self, node: Node<'_>) {
        if let Some(condition) = node.child_by_field_name("condition") {
            let range = condition.byte_range();
            // An endless loop says nothing about its condition.
            if node.kind() != "while_statement" {
                self.replace(range.clone(), "true", "condition");
            }
            if node.kind() != "repeat_statement" {
                self.replace(range, "false", "condition");
            }
        }
    }

    fn operator(&mut self, node: Node<'_>) {
        let (Some(left), Some(right)) = (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ) else {
            return;
        };
        let Some(operator) = children(node).find(|it| !it.is_named()) else {
            return;
        };
        let others: &[&str] = match operator.kind() {
            "==" => &["~="],
            "~=" => &["=="],
            "<" => &["<=", ">="],
            "<=" => &["<", ">"],
            ">" => &[">=", "<="],
            ">=" => &[">", "<"],
            "and" => &["or"],
            "or" => &["and"],
            "+" => &["-"],
            "-" => &["+"],
            "*" => &["/"],
            "/" => &["*"],
            "%" => &["*"],
            _ => &[],
        };
        for other in others {
            self.replace(operator.byte_range(), *other, "operator");
        }
        if matches!(operator.kind(), "and" | "or") {
            self.replace(left.start_byte()..right.start_byte(), "", "operand removed");
            self.replace(left.end_byte()..right.end_byte(), "", "operand removed");
        }
    }

    fn unary(&mut self, node: Node<'_>) {
        if let Some(operand) = node.child_by_field_name("operand")
            && !self.text(node).starts_with('#')
        {
            self.replace(node.start_byte()..operand.start_byte(), "", "operator");
        }
    }

    fn number(&mut self, node: Node<'_>) {
        let Ok(number) = self.text(node).parse::<i64>() else {
            return;
        };
        let key = node
            .parent()
            .is_some_and(|parent| parent.kind() == "bracket_index_expression");
        let operator = if key { "index" } else { "constant" };
        let mut others = vec![number + 1, number - 1];
        if !key && number > 1 {
            others.push(0);
        }
        // A list has nothing before its first element.
        for other in others.into_iter().filter(|other| !key || *other > 0) {
            self.replace(node.byte_range(), other.to_string(), operator);
        }
    }

    fn string(&mut self, node: Node<'_>) {
        // No server knows a command without its name.
        if self.is_command(node) {
            return;
        }
        let text = self.text(node);
        if text.len() == 2 && self.is_no_number(node) {
            return;
        }
        let other = if text.len() == 2 { "'~'" } else { "''" };
        self.replace(node.byte_range(), other, "constant");
    }

    /// Whether a string is the fallback of a `tonumber` argument.
    fn is_no_number(&self, node: Node<'_>) -> bool {
        let either = node.parent().filter(|it| {
            it.kind() == "binary_expression" && children(*it).any(|part| part.kind() == "or")
        });
        let last = either.filter(|it| it.child_by_field_name("right") == Some(node));
        let arguments = last
            .and_then(|it| it.parent())
            .filter(|it| it.kind() == "arguments" && named(*it).count() == 1);
        let call = arguments.and_then(|it| it.parent());
        call.is_some_and(|call| self.text(call).starts_with("tonumber("))
    }

    /// Whether a string is the name of a command.
    fn is_command(&self, node: Node<'_>) -> bool {
        let arguments = node.parent().filter(|it| it.kind() == "arguments");
        arguments.is_some_and(|arguments| {
            let call = arguments.parent();
            call.is_some_and(|call| is_of_server(self.text(call)))
                && named(arguments).next() == Some(node)
        })
    }

    fn arguments(&mut self, node: Node<'_>) {
        let of_server = node
            .parent()
            .is_some_and(|call| is_of_server(self.text(call)));
        let given: Vec<_> = named(node).collect();
        // A server refuses a command without its name or its key.
        let first = if of_server { 2 } else { 0 };
        self.drop_each(&given, first, "argument removed");
    }

    fn elements(&mut self, node: Node<'_>) {
        let fields: Vec<_> = named(node).filter(|it| it.kind() == "field").collect();
        self.drop_each(&fields, 0, "element removed");
    }

    fn drop_each(&mut self, nodes: &[Node<'_>], first: usize, operator: &'static str) {
        for at in first..nodes.len() {
            let range = match (nodes.get(at + 1), at.checked_sub(1)) {
                (Some(next), _) => nodes[at].start_byte()..next.start_byte(),
                (None, Some(before)) => nodes[before].end_byte()..nodes[at].end_byte(),
                (None, None) => nodes[at].byte_range(),
            };
            self.replace(range, "", operator);
        }
    }
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |at| node.child(at as u32))
}

fn named(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(node).filter(|child| child.is_named() && child.kind() != "comment")
}

fn is_local(node: Node<'_>) -> bool {
    node.parent()
        .is_some_and(|parent| parent.kind() == "variable_declaration")
}

fn is_statement(node: Node<'_>) -> bool {
    node.parent()
        .is_some_and(|parent| matches!(parent.kind(), "block" | "chunk"))
}

/// Whether a call runs a command.
fn is_of_server(call: &str) -> bool {
    call.starts_with("redis.call") || call.starts_with("redis.pcall")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every change of a text, as the whole changed text.
    fn changed(source: &str) -> Vec<String> {
        let edits = edits(source).expect("it is Lua");
        let changed = edits.into_iter().map(|edit| {
            let (from, to) = edit.range;
            format!("{}{}{}", &source[..from], edit.after, &source[to..])
        });
        changed.collect()
    }

    #[test]
    fn what_is_no_change_is_left_out() {
        let all = changed("local function f()\n  return\nend");
        assert!(!all.iter().any(|it| it.contains("return nil")), "{all:?}");
        let all = changed("local function f()\n  return 1\nend");
        assert!(all.iter().any(|it| it.contains("return nil")), "{all:?}");
        let all = changed("local a = tonumber(b or '')");
        assert!(!all.iter().any(|it| it.contains('~')), "{all:?}");
        for text in [
            "local a = tonumber(b, '')",
            "local a = b or ''",
            "local a = f(b or '')",
        ] {
            assert!(changed(text).iter().any(|it| it.contains("'~'")), "{text}");
        }
    }
}
