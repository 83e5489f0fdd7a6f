//! All that programs can name in one crate, as a text: what a review sees of a change of the public API.
//!
//! Every definition that can be reached from the root of the crate stands there once, by its shortest name, with its fields,
//! variants, methods and the traits that it implements; under other names and from other crates, as a `pub use`. What is
//! `#[doc(hidden)]` stands there too, as other crates of ours may use it. What no source says is missing: auto traits, and what
//! the lifetimes of an `impl Trait` come to. Those are for cargo-semver-checks, before a release.

use std::collections::BTreeMap;

use quote::{ToTokens, quote};
use syn::{Fields, ImplItem, Item as Syntax, ItemImpl, Signature, TraitItem, Type};

use super::attributes::{derived, marks};
use super::reach::{Place, Reach, is_public, named};
use super::source::{Module, ModulePath, Sources};
use super::tokens::line;

/// One crate's public API, a definition or re-export after the other, in order of their names.
#[must_use]
pub fn surface(sources: &Sources, krate: &str) -> String {
    let root = vec![krate.replace('-', "_")];
    let mut reach = Reach::all(sources);
    reach.enter(&root, &root[0]);
    let mut blocks: BTreeMap<String, String> = BTreeMap::new();
    for (place, public) in &reach.found {
        let block = blocks.entry(public.clone()).or_default();
        block.push_str(&definition(sources, place, public));
    }
    for (public, what) in &reach.imported {
        let block = blocks.entry(public.clone()).or_default();
        if block.is_empty() {
            block.push_str(&format!("{what}\n"));
        }
    }
    let mut text: String = blocks.into_values().collect();
    text.push_str(&for_others(sources, &root));
    text.push_str(&made_by_macros(sources, &root));
    text
}

/// One definition and what belongs to it.
fn definition(sources: &Sources, (path, name): &Place, public: &str) -> String {
    let module = &sources.modules[path];
    let mut text = String::new();
    for item in &module.items {
        let of_this = named(item).is_some_and(|(own, _)| own == *name);
        if of_this && !matches!(item, Syntax::Mod(_)) {
            let head = described(item, public);
            let parts = belonging(sources, path, name, item);
            for (at, line) in head.iter().chain(&parts).enumerate() {
                let start = if at == 0 { &*module.conditions } else { "    " };
                text.push_str(&format!("{start}{line}\n"));
            }
        }
    }
    text
}

/// The line of an item, and those of its parts.
fn described(item: &Syntax, public: &str) -> Vec<String> {
    match item {
        Syntax::Struct(item) => {
            let (generics, bounds) = (&item.generics, &item.generics.where_clause);
            let head = format!("pub struct {public}{} {}", line(generics), line(bounds));
            with_parts(marks(&item.attrs), head, fields(&item.fields, true))
        }
        Syntax::Enum(item) => {
            let (generics, bounds) = (&item.generics, &item.generics.where_clause);
            let head = format!("pub enum {public}{} {}", line(generics), line(bounds));
            let variants = item.variants.iter().map(|variant| {
                let parts = fields(&variant.fields, false).join(", ");
                let parts = match &variant.fields {
                    Fields::Named(_) => format!(" {{ {parts} }}"),
                    Fields::Unnamed(_) => format!("({parts})"),
                    Fields::Unit => String::new(),
                };
                let value = variant.discriminant.as_ref();
                let value =
                    value.map_or_else(String::new, |(_, value)| format!(" = {}", line(value)));
                format!("{}{}{parts}{value}", marks(&variant.attrs), variant.ident)
            });
            with_parts(marks(&item.attrs), head, variants.collect())
        }
        Syntax::Trait(item) => {
            let (generics, bounds) = (&item.generics, &item.generics.where_clause);
            let (colon, above) = (&item.colon_token, &item.supertraits);
            let above = line(quote!(#colon #above #bounds));
            let head = format!("pub trait {public}{}{above}", line(generics));
            with_parts(
                marks(&item.attrs),
                head,
                item.items.iter().map(asked).collect(),
            )
        }
        Syntax::Type(item) => {
            let (generics, of) = (&item.generics, &item.ty);
            vec![format!(
                "{}pub type {public}{} = {}",
                marks(&item.attrs),
                line(generics),
                line(of)
            )]
        }
        Syntax::Const(item) => {
            let (of, value) = (&item.ty, &item.expr);
            vec![format!(
                "{}pub const {public}: {} = {}",
                marks(&item.attrs),
                line(of),
                line(value)
            )]
        }
        Syntax::Fn(item) => {
            let mut signature = item.sig.clone();
            // Replaced as text: a path is no name of a function.
            signature.ident = quote::format_ident!("NAME");
            let signature = of_signature(&signature).replacen("NAME", public, 1);
            vec![format!("{}pub {signature}", marks(&item.attrs))]
        }
        Syntax::Macro(item) => {
            // What may be written between its braces, not what becomes of it.
            let arms = patterns(item.mac.tokens.clone());
            with_parts(marks(&item.attrs), format!("macro {public}!"), arms)
        }
        other => vec![line(other)],
    }
}

fn with_parts(marks: String, head: String, parts: Vec<String>) -> Vec<String> {
    let head = format!("{marks}{}", head.trim_end());
    [vec![head], parts].concat()
}

/// Public fields; one line stands for all others.
fn fields(fields: &Fields, of_struct: bool) -> Vec<String> {
    let mut shown = Vec::new();
    let mut hidden = false;
    for (at, field) in fields.iter().enumerate() {
        if of_struct && !is_public(&field.vis) {
            hidden = true;
            continue;
        }
        let name = field.ident.as_ref().map(ToString::to_string);
        let of = line(&field.ty);
        let of = match (name, of_struct) {
            (Some(name), _) => format!("{name}: {of}"),
            (None, true) => format!("{at}: {of}"),
            (None, false) => of,
        };
        shown.push(format!("{}{of}", marks(&field.attrs)));
    }
    if hidden {
        shown.push("..".to_owned());
    }
    shown
}

/// Something that a trait asks for; what has a body, or a value, need not be given.
fn asked(item: &TraitItem) -> String {
    match item {
        TraitItem::Fn(method) => {
            let body = if method.default.is_some() {
                " { .. }"
            } else {
                ""
            };
            format!(
                "{}{}{body}",
                marks(&method.attrs),
                of_signature(&method.sig)
            )
        }
        other => line(other),
    }
}

/// A `mut` before an argument is nobody else's business.
fn of_signature(signature: &Signature) -> String {
    line(signature)
        .replace("(mut ", "(")
        .replace(", mut ", ", ")
}

/// Of a type: methods, and traits that it implements.
fn belonging(sources: &Sources, path: &ModulePath, name: &str, item: &Syntax) -> Vec<String> {
    let attributes = match item {
        Syntax::Struct(item) => &item.attrs,
        Syntax::Enum(item) => &item.attrs,
        _ => return Vec::new(),
    };
    let (mut methods, mut traits) = (Vec::new(), derived(attributes));
    for (at, module) in sources.of_crate(path) {
        for block in blocks(module) {
            if sources.type_of(at, &block.self_ty) != Some((path.clone(), name.to_owned())) {
                continue;
            }
            let around = &module.conditions;
            let elsewhere = if *around == sources.modules[path].conditions {
                ""
            } else {
                around
            };
            let conditions = format!("{elsewhere}{}", marks(&block.attrs));
            if block.trait_.is_some() {
                traits.push(format!("{conditions}{}", header(block)));
            } else {
                let generics = &block.generics;
                let whose = match generics.params.is_empty() {
                    true => String::new(),
                    false => format!("{}: ", header(block)),
                };
                let inside = block.items.iter().filter_map(offered);
                methods.extend(inside.map(|method| format!("{conditions}{whose}{method}")));
            }
        }
    }
    methods.sort();
    traits.sort();
    [methods, traits].concat()
}

fn offered(item: &ImplItem) -> Option<String> {
    match item {
        ImplItem::Fn(method) if is_public(&method.vis) => Some(format!(
            "{}pub {}",
            marks(&method.attrs),
            of_signature(&method.sig)
        )),
        ImplItem::Const(item) if is_public(&item.vis) => {
            let (name, of) = (&item.ident, &item.ty);
            Some(format!(
                "{}pub const {name}: {}",
                marks(&item.attrs),
                line(of)
            ))
        }
        _ => None,
    }
}

/// Traits for what is not a type of this crate, such as references to anything, or another crate's type.
fn for_others(sources: &Sources, root: &ModulePath) -> String {
    let mut found: Vec<String> = sources
        .of_crate(root)
        .flat_map(|(at, module)| blocks(module).map(move |block| (at, module, block)))
        .filter(|(at, _, block)| {
            block.trait_.is_some() && sources.type_of(at, &block.self_ty).is_none()
        })
        .map(|(_, module, block)| {
            format!(
                "{}{}{}\n",
                module.conditions,
                marks(&block.attrs),
                header(block)
            )
        })
        .collect();
    found.sort();
    found.concat()
}

/// Calls of macros that implement traits, which are written beside them.
fn made_by_macros(sources: &Sources, root: &ModulePath) -> String {
    let mut text = String::new();
    for (_, module) in sources.of_crate(root) {
        let calls = module.items.iter().filter_map(|item| match item {
            Syntax::Macro(call) => Some(call),
            _ => None,
        });
        for call in calls.clone().filter(|call| call.ident.is_none()) {
            let implements = |of: &&syn::ItemMacro| {
                of.ident
                    .as_ref()
                    .is_some_and(|name| call.mac.path.is_ident(name))
                    && line(&of.mac.tokens).contains("impl From")
            };
            if calls.clone().any(|of| implements(&of)) {
                let call = line(call).replacen(" !", "!", 1);
                text.push_str(&format!("{}{call}\n", module.conditions));
            }
        }
    }
    text
}

fn blocks(module: &Module) -> impl Iterator<Item = &ItemImpl> {
    module.items.iter().filter_map(|item| match item {
        Syntax::Impl(block) => Some(block),
        _ => None,
    })
}

/// `impl<T> Trait for Type<T>`, without what is in it.
fn header(block: &ItemImpl) -> String {
    let bare = ItemImpl {
        attrs: Vec::new(),
        items: Vec::new(),
        ..block.clone()
    };
    line(bare).trim_end_matches([' ', '{', '}']).to_owned()
}

/// The patterns of a macro by example.
fn patterns(tokens: proc_macro2::TokenStream) -> Vec<String> {
    let trees: Vec<_> = tokens.into_iter().collect();
    let arms = trees
        .split(|tree| matches!(tree, proc_macro2::TokenTree::Punct(sign) if sign.as_char() == ';'));
    let first = arms.filter_map(|arm| arm.first());
    first
        .map(|pattern| line(pattern.to_token_stream()))
        .collect()
}

impl Sources {
    /// The type of this crate that a path means.
    fn type_of(&self, at: &ModulePath, of: &Type) -> Option<Place> {
        let Type::Path(of) = of else { return None };
        let segments: Vec<String> = of
            .path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        let (name, before) = segments.split_last()?;
        let place = self.definition(&self.module(at, before)?, name, 0)?;
        (place.0[0] == at[0]).then_some(place)
    }
}
