//! What attributes say of an item: whether it is there, and how it may be used.

use syn::{Attribute, Meta};

use super::tokens::line;

/// Those that are a part of the API, before the item.
pub(super) fn marks(attributes: &[Attribute]) -> String {
    let of_api = |attribute: &&Attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("doc") => list.tokens.to_string() == "hidden",
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            list.tokens.to_string().contains("non_exhaustive")
        }
        meta => [
            "cfg",
            "non_exhaustive",
            "deprecated",
            "proc_macro_attribute",
        ]
        .iter()
        .any(|name| meta.path().is_ident(name)),
    };
    let shown = attributes.iter().filter(of_api);
    shown
        .map(|attribute| format!("{} ", line(attribute)))
        .collect()
}

/// Only the conditions under which an item is there.
pub(super) fn conditions(attributes: &[Attribute]) -> String {
    let conditions = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    conditions
        .map(|attribute| format!("{} ", line(attribute)))
        .collect()
}

/// The traits that are derived, as if they were written out.
pub(super) fn derived(attributes: &[Attribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        if attribute.path().is_ident("derive") {
            let _ = attribute.parse_nested_meta(|meta| {
                found.push(format!("derive {}", line(&meta.path)));
                Ok(())
            });
        }
    }
    found
}
