//! One public item.

use std::path::PathBuf;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use syn::{Attribute, Expr, Lit, Meta, ReturnType, Signature, Type, TypeParamBound};

/// A public item, as the rules see it.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its public name, with its crate and, for a method, its type:
    /// `locktopus::LockGuard::release`.
    pub name: String,
    /// Its file, relative to the root of the repository.
    pub file: PathBuf,
    /// Its sort.
    pub sort: Sort,
    /// The compiled examples of its documentation.
    pub examples: Vec<String>,
    /// The headings of its documentation.
    pub headings: Vec<String>,
    /// Times in it that are bare numbers without a unit in name or words.
    pub without_unit: Vec<String>,
}

/// The sort of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A struct, an enum or a trait, or an alias of one.
    Type,
    /// A macro.
    Macro,
    /// A function or a method.
    Function {
        /// It is awaited.
        is_async: bool,
        /// It returns a `Result`.
        can_fail: bool,
        /// Its only parameter is `self`.
        asks_nothing: bool,
        /// It belongs to a trait.
        of_trait: bool,
    },
}

impl Item {
    pub(super) fn new(name: String, file: PathBuf, sort: Sort, attributes: &[Attribute]) -> Self {
        let (examples, headings) = read(&documentation(attributes));
        Self {
            name,
            file,
            sort,
            examples,
            headings,
            without_unit: Vec::new(),
        }
    }

    pub(super) fn with_times(mut self, without_unit: Vec<String>) -> Self {
        self.without_unit = without_unit;
        self
    }

    /// The name without its crate and type.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit("::").next().unwrap_or(&self.name)
    }
}

pub(super) fn sort_of(signature: &Signature, of_trait: bool) -> Sort {
    let output = match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, output) => Some(&**output),
    };
    let future = output.and_then(future_of);
    Sort::Function {
        is_async: signature.asyncness.is_some() || future.is_some(),
        can_fail: future.unwrap_or(output).is_some_and(is_result),
        asks_nothing: signature
            .inputs
            .iter()
            .all(|input| matches!(input, syn::FnArg::Receiver(_))),
        of_trait,
    }
}

/// Whether it is `#[doc(hidden)]` or deprecated: users are not meant to find it.
pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("doc") => list.tokens.to_string() == "hidden",
        meta => meta.path().is_ident("deprecated"),
    })
}

fn is_result(output: &Type) -> bool {
    last_name(output).is_some_and(|name| name == "Result")
}

fn last_name(path: &Type) -> Option<String> {
    match path {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

/// The output of the future that a function returns without being `async`; `None` if it returns no
/// future.
fn future_of(output: &Type) -> Option<Option<&Type>> {
    let bounds = match output {
        Type::ImplTrait(future) => &future.bounds,
        Type::TraitObject(future) => &future.bounds,
        // `Pin<Box<dyn Future>>`, and any other type whose last argument is a future.
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return None;
            };
            if last.ident != "Pin" && last.ident != "Box" {
                return None;
            }
            return arguments.args.iter().find_map(|argument| match argument {
                syn::GenericArgument::Type(inner) => future_of(inner),
                _ => None,
            });
        }
        _ => return None,
    };
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let last = bound.path.segments.last()?;
        if last.ident != "Future" {
            return None;
        }
        let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
            return Some(None);
        };
        Some(arguments.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::AssocType(output) => Some(&output.ty),
            _ => None,
        }))
    })
}

pub(super) fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(doc) = &attribute.meta
            && doc.path.is_ident("doc")
            && let Expr::Lit(value) = &doc.value
            && let Lit::Str(line) = &value.lit
        {
            text.push_str(&line.value());
            text.push('\n');
        }
    }
    text
}

/// Examples and headings.
fn read(documentation: &str) -> (Vec<String>, Vec<String>) {
    // Lines of documentation start with a space, except in blocks.
    let text: String = documentation
        .lines()
        .flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"])
        .collect();
    let (mut examples, mut headings) = (Vec::new(), Vec::new());
    // The block or heading that the text belongs to.
    let mut open: Option<String> = None;
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if is_compiled(&language) =>
            {
                open = Some(String::new());
            }
            Event::Start(Tag::Heading { .. }) => open = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => examples.extend(open.take()),
            Event::End(TagEnd::Heading(_)) => headings.extend(open.take()),
            Event::Text(more) | Event::Code(more) => {
                if let Some(open) = &mut open {
                    open.push_str(&more);
                }
            }
            _ => {}
        }
    }
    (examples, headings)
}

/// Whether rustdoc compiles such a block, and expects it to compile.
fn is_compiled(language: &str) -> bool {
    language
        .split(',')
        .map(str::trim)
        .all(|word| matches!(word, "" | "rust" | "no_run" | "should_panic"))
}
