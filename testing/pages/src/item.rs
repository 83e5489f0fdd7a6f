//! One public item: its documentation, and its signature as far as the rules care.

use std::path::PathBuf;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Lit, Meta, PathArguments, ReturnType, Signature, Type,
    TypeParamBound, Visibility,
};

/// A public item, as the rules see it.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name with its crate and, for a method, its type: `locktopus_core::LockGuard::release`.
    pub name: String,
    /// Its file, relative to the root of the repository.
    pub file: PathBuf,
    pub(crate) sort: Sort,
    pub(crate) examples: Vec<String>,
    pub(crate) headings: Vec<String>,
    /// Times in it that are bare numbers without a unit in name or words.
    pub without_unit: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A struct, an enum or a trait, or an alias of one.
    Type,
    Macro,
    Function {
        is_async: bool,
        can_fail: bool,
        /// Its only parameter is `self`.
        asks_nothing: bool,
        of_trait: bool,
    },
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether it is `#[doc(hidden)]` or deprecated: users are not meant to find it.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("doc") => list.tokens.to_string() == "hidden",
        meta => meta.path().is_ident("deprecated"),
    })
}

pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition.starts_with("test") || condition.starts_with("all (test")
        }
        _ => false,
    })
}

pub(crate) fn sort_of(signature: &Signature, of_trait: bool) -> Sort {
    let output = match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, output) => Some(&**output),
    };
    let future = output.and_then(future_of);
    let fails = |output| last_name(output).is_some_and(|name| name == "Result");
    let mut inputs = signature.inputs.iter();
    Sort::Function {
        is_async: signature.asyncness.is_some() || future.is_some(),
        can_fail: future.unwrap_or(output).is_some_and(fails),
        asks_nothing: inputs.all(|input| matches!(input, FnArg::Receiver(_))),
        of_trait,
    }
}

pub(crate) fn last_name(path: &Type) -> Option<String> {
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
        // `Pin<Box<dyn Future>>`.
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(inside) = &last.arguments else {
                return None;
            };
            if last.ident != "Pin" && last.ident != "Box" {
                return None;
            }
            return inside.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(inner) => future_of(inner),
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
        let PathArguments::AngleBracketed(inside) = &last.arguments else {
            return Some(None);
        };
        Some(inside.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) => Some(&output.ty),
            _ => None,
        }))
    })
}

pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(doc) = &attribute.meta
            && doc.path.is_ident("doc")
            && let Expr::Lit(value) = &doc.value
            && let Lit::Str(line) = &value.lit
        {
            // Lines of documentation start with a space, except in blocks.
            let line = line.value();
            text.push_str(line.strip_prefix(' ').unwrap_or(&line));
            text.push('\n');
        }
    }
    text
}

/// The compiled examples, and the headings.
pub(crate) fn read(documentation: &str) -> (Vec<String>, Vec<String>) {
    let compiled = |language: &str| {
        let mut words = language.split(',').map(str::trim);
        words.all(|word| matches!(word, "" | "rust" | "no_run" | "should_panic"))
    };
    let (mut examples, mut headings) = (Vec::new(), Vec::new());
    // The block or heading that the text belongs to.
    let mut open: Option<String> = None;
    for event in Parser::new(documentation) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if compiled(&language) =>
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
