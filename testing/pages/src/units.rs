//! Times that are bare numbers must have a unit, in their name or their documentation. A `Duration`
//! needs none.

use syn::{
    Attribute, Fields, FnArg, GenericArgument, ItemEnum, Pat, PathArguments, ReturnType, Signature,
    Type,
};

use crate::item::{documentation, is_public};

/// Parts of names of times.
const TIMES: [&str; 18] = [
    "age",
    "clock",
    "deadline",
    "delay",
    "duration",
    "elapsed",
    "interval",
    "lease",
    "now",
    "pause",
    "period",
    "remaining",
    "since",
    "time",
    "timeout",
    "ttl",
    "until",
    "wait",
];
/// Parts of names that give a unit.
const IN_NAMES: [&str; 13] = [
    "hours",
    "micros",
    "millis",
    "milliseconds",
    "minutes",
    "ms",
    "nanos",
    "ns",
    "s",
    "seconds",
    "secs",
    "times",
    "us",
];
/// Starts of words that give a unit in a sentence.
const IN_WORDS: [&str; 6] = [
    "nanosecond",
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
];
/// The same, abbreviated.
const SHORT: [&str; 3] = ["ns", "µs", "ms"];

/// The public fields of a type that are times without a unit.
pub(super) fn of_fields(fields: &Fields) -> Vec<String> {
    let without = fields.iter().filter_map(|field| {
        let name = field.ident.as_ref()?.to_string();
        let public = is_public(&field.vis);
        (public && is_bare(&name, &field.ty) && !says(&field.attrs)).then_some(name)
    });
    without.collect()
}

/// The fields of variants, which are all public.
pub(super) fn of_variants(item: &ItemEnum) -> Vec<String> {
    let fields = item.variants.iter().flat_map(|variant| &variant.fields);
    let without = fields.filter_map(|field| {
        let name = field.ident.as_ref()?.to_string();
        (is_bare(&name, &field.ty) && !says(&field.attrs)).then_some(name)
    });
    without.collect()
}

/// The parameters and results of a function that are times without a unit.
pub(super) fn of_function(signature: &Signature, attributes: &[Attribute]) -> Vec<String> {
    if says(attributes) {
        return Vec::new();
    }
    let mut without: Vec<String> = signature
        .inputs
        .iter()
        .filter_map(|input| {
            let FnArg::Typed(input) = input else {
                return None;
            };
            let Pat::Ident(name) = &*input.pat else {
                return None;
            };
            let name = name.ident.to_string();
            is_bare(&name, &input.ty).then_some(name)
        })
        .collect();
    let name = signature.ident.to_string();
    if let ReturnType::Type(_, output) = &signature.output
        && is_bare(&name, output)
    {
        without.push(name);
    }
    without
}

/// Whether something of this name and type is a time whose name has no unit.
fn is_bare(name: &str, of: &Type) -> bool {
    let mut parts = name.split('_');
    is_number(of)
        && parts.clone().any(|part| TIMES.contains(&part))
        && !parts.any(|part| IN_NAMES.contains(&part))
}

/// A number, or an optional one.
fn is_number(of: &Type) -> bool {
    let Type::Path(path) = of else { return false };
    let Some(last) = path.path.segments.last() else {
        return false;
    };
    match &last.arguments {
        PathArguments::AngleBracketed(inside) if last.ident == "Option" => {
            inside.args.iter().any(|inside| match inside {
                GenericArgument::Type(inside) => is_number(inside),
                _ => false,
            })
        }
        PathArguments::None => {
            let name = last.ident.to_string();
            let size = name.strip_prefix(['u', 'i', 'f']);
            size.is_some_and(|size| size == "size" || size.parse::<u8>().is_ok())
        }
        _ => false,
    }
}

fn says(attributes: &[Attribute]) -> bool {
    let text = documentation(attributes);
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        let lower = word.to_lowercase();
        SHORT.contains(&word) || IN_WORDS.iter().any(|unit| lower.starts_with(unit))
    })
}
