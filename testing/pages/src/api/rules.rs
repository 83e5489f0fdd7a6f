//! The required documentation of each public item.
//!
//! * **A compiled example**. An awaited item has its own. For a method that is not awaited, the
//!   example of its type at the top of the page is enough, if it visibly calls the method; if the
//!   method takes only `self`, any example on the page is. For a type, an example of one of its
//!   methods is enough, or any example that visibly names it; if several types have that name, the
//!   example must be of its own module or name the module. Methods of traits are what
//!   implementations write, so the trait's example is enough.
//! * **`# Errors`** if it returns a `Result`, and **`# Cancel safety`** if it is awaited. A trait
//!   may say it for all of its methods.
//! * **A unit** for each time that is a bare number, by its name or in words.

use std::fmt;

use super::item::{Item, Sort};

/// Something that the documentation of an item lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// An example.
    Example,
    /// The section `# Errors`.
    Errors,
    /// The section `# Cancel safety`.
    CancelSafety,
    /// The unit of a time that is a bare number.
    Unit,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Example => "example",
            Self::Errors => "errors",
            Self::CancelSafety => "cancel-safety",
            Self::Unit => "unit",
        })
    }
}

/// The gaps of these items, in their order.
#[must_use]
pub fn lacks(items: &[Item]) -> Vec<(&Item, Lack)> {
    let mut found = Vec::new();
    for item in items {
        if !has_example(item, items) {
            found.push((item, Lack::Example));
        }
        if !item.without_unit.is_empty() {
            found.push((item, Lack::Unit));
        }
        if let Sort::Function {
            is_async, can_fail, ..
        } = item.sort
        {
            if can_fail && !says(item, items, "Errors") {
                found.push((item, Lack::Errors));
            }
            if is_async && !says(item, items, "Cancel safety") {
                found.push((item, Lack::CancelSafety));
            }
        }
    }
    found
}

fn has_example(item: &Item, items: &[Item]) -> bool {
    if !item.examples.is_empty() {
        return true;
    }
    match item.sort {
        Sort::Macro => false,
        Sort::Type => {
            let inside = format!("{}::", item.name);
            is_named(item, items)
                || items
                    .iter()
                    .any(|method| method.name.starts_with(&inside) && !method.examples.is_empty())
        }
        Sort::Function { of_trait: true, .. } => {
            type_of(item, items).is_some_and(|of| !of.examples.is_empty())
        }
        Sort::Function { is_async: true, .. } => false,
        Sort::Function { asks_nothing, .. } => is_called_beside(item, items, asks_nothing),
    }
}

/// Whether an example visibly names a type.
fn is_named(item: &Item, items: &[Item]) -> bool {
    let name = item.short_name();
    let same = |other: &&Item| other.sort == Sort::Type && other.short_name() == name;
    let alone = items.iter().filter(same).count() == 1;
    let module = module_of(item, items);
    let by_path = format!("{}::{name}", module.rsplit("::").next().unwrap_or(module));
    items.iter().any(|other| {
        let here = alone || module_of(other, items) == module;
        other.examples.iter().any(|example| {
            (here || example.contains(&by_path))
                && seen(example).any(|line| words(line).any(|word| word == name))
        })
    })
}

/// The lines of an example that readers see, without hidden lines and comments.
fn seen(example: &str) -> impl Iterator<Item = &str> {
    let shown = example.lines().filter(|line| {
        let line = line.trim_start();
        line != "#" && !line.starts_with("# ")
    });
    shown.map(|line| match line.split_once("//") {
        // The slashes of an address start no comment.
        Some((code, _)) if !code.ends_with(':') => code,
        _ => line,
    })
}

/// The module of an item, or of its type.
fn module_of<'a>(item: &'a Item, items: &'a [Item]) -> &'a str {
    let of = type_of(item, items).filter(|of| of.sort == Sort::Type);
    let (module, _) = of
        .unwrap_or(item)
        .name
        .rsplit_once("::")
        .unwrap_or_default();
    module
}

/// Whether an example of its type calls it or, with `whole_page`, one of another method.
fn is_called_beside(item: &Item, items: &[Item], whole_page: bool) -> bool {
    let Some(of) = type_of(item, items) else {
        return false;
    };
    let inside = format!("{}::", of.name);
    let (method, function) = (
        format!(".{}(", item.short_name()),
        format!("{}::{}(", of.short_name(), item.short_name()),
    );
    items
        .iter()
        .filter(|other| other.name == of.name || whole_page && other.name.starts_with(&inside))
        .flat_map(|other| &other.examples)
        .flat_map(|example| seen(example))
        .any(|line| line.contains(&method) || line.contains(&function))
}

fn says(item: &Item, items: &[Item], heading: &str) -> bool {
    let of_trait = matches!(item.sort, Sort::Function { of_trait: true, .. });
    let has = |item: &Item| item.headings.iter().any(|own| own == heading);
    has(item) || of_trait && type_of(item, items).is_some_and(has)
}

fn type_of<'a>(item: &Item, items: &'a [Item]) -> Option<&'a Item> {
    let (of, _) = item.name.rsplit_once("::")?;
    items.iter().find(|other| other.name == of)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Sources, public_items};

    /// The gaps of a crate's items, one line each.
    fn lacks_of(text: &str) -> Vec<String> {
        let items = public_items(&Sources::of_text("a", text), &["a"]);
        lacks(&items)
            .iter()
            .map(|(item, lack)| format!("{lack} {}", item.name))
            .collect()
    }

    const EXAMPLE: &str = "/// ```\n/// let guard = Guard::open(); guard.name();\n/// ```\n";

    #[test]
    fn everything_that_users_call_needs_an_example() {
        let text =
            "mod inner { pub struct Guard; impl Guard { pub fn open(at: u8) {} fn own(&self) {} } }
            pub use inner::Guard;
            pub fn free() {}
            #[macro_export] macro_rules! shout { () => {} }
            #[doc(hidden)] pub fn hidden() {}
            #[doc(hidden)] pub mod internal { pub fn own() {} }
            pub(crate) struct Private;
            impl Private { pub fn unseen(&self) {} }";
        let expected = ["a::Guard", "a::Guard::open", "a::free", "a::shout"];
        assert_eq!(
            lacks_of(text),
            expected.map(|name| format!("example {name}"))
        );
    }

    #[test]
    fn the_example_of_a_type_shows_what_it_calls() {
        let example = "/// ```\n/// # hidden.drop_it();\n/// let guard = Guard::open(7); guard.set(8);\n/// ```\n";
        let methods = "impl Guard { pub fn open(at: u8) {} pub fn set(&self, to: u8) {} pub fn token(&self) {} \
                       pub fn drop_it(&self) {} pub async fn close(&self) {} }";
        let text = format!("{example} pub struct Guard; {methods}");
        let lacking = ["example a::Guard::close", "cancel-safety a::Guard::close"];
        let hidden = ["example a::Guard::drop_it", "example a::Guard::token"];
        assert_eq!(lacks_of(&text), [lacking, hidden].concat());
    }

    #[test]
    fn the_example_of_a_method_shows_getters_alone() {
        let methods = format!(
            "impl Guard {{ {EXAMPLE} pub fn open() {{}} pub fn name(&self) {{}} pub fn set(&self, to: u8) {{}} }}"
        );
        assert_eq!(
            lacks_of(&format!("pub struct Guard; {methods}")),
            ["example a::Guard::set"]
        );
    }

    #[test]
    fn a_type_is_shown_where_an_example_names_it() {
        let text = format!("pub struct Guard; pub struct Guardian; {EXAMPLE} pub fn open() {{}}");
        assert_eq!(lacks_of(&text), ["example a::Guardian"]);
    }

    #[test]
    fn a_name_that_readers_do_not_see_shows_nothing() {
        for line in [
            "# use a::Guard;",
            "    # let guard: Guard = open();",
            "open(); // a Guard",
            "#",
        ] {
            let text =
                format!("pub struct Guard; /// ```\n/// {line}\n/// ```\npub fn open() {{}}");
            assert_eq!(lacks_of(&text), ["example a::Guard"], "{line}");
        }
        let text =
            "pub struct Guard; /// ```\n/// open(\"a://b\", Guard);\n/// ```\npub fn open() {}";
        assert!(lacks_of(text).is_empty());
    }

    #[test]
    fn one_of_several_of_a_name_is_shown_in_its_own_module_or_by_it() {
        let of = |hidden: &str, module: &str| {
            let example =
                format!("/// ```\n/// # {hidden}\n/// Guard::open();\n/// ```\npub fn open() {{}}");
            let (outer, inner) = if module.is_empty() {
                (&*example, "")
            } else {
                ("", &*example)
            };
            lacks_of(&format!(
                "pub struct Guard; {outer} pub mod inner {{ pub struct Guard; {inner} }}"
            ))
        };
        assert_eq!(of("", ""), ["example a::inner::Guard"]);
        assert_eq!(of("", "inner"), ["example a::Guard"]);
        assert!(of("use a::inner::Guard;", "").is_empty());
    }

    #[test]
    fn times_that_are_numbers_have_a_unit() {
        let example = |text: &str| lacks_of(&format!("{EXAMPLE}{text}"));
        for text in [
            "pub fn lease() -> Option<u64> { None }",
            "pub fn open(timeout: u32) {}",
            "pub struct Guard { pub valid_until: u64 }",
            "pub enum Guard { Lost { since: u64 } }",
        ] {
            assert_eq!(example(text).len(), 1, "{text}");
            assert!(example(text)[0].starts_with("unit a::"), "{text}");
        }
        for text in [
            "pub fn lease_ms() -> u64 { 0 }",
            "pub fn open(timeout: Duration, waiters: u32) {}",
            "pub struct Guard { lease: u64, /// In milliseconds.\npub valid_until: u64 }",
            "/// Counts seconds.\npub fn lease() -> u64 { 0 }",
            "pub fn repeated(times: u32) {}",
        ] {
            assert!(example(text).is_empty(), "{text}: {:?}", example(text));
        }
    }

    #[test]
    fn blocks_that_nobody_compiles_are_no_examples() {
        for language in ["text", "ignore", "compile_fail", "toml"] {
            let text = format!("/// ```{language}\n/// x\n/// ```\npub fn open() {{}}");
            assert_eq!(lacks_of(&text), ["example a::open"], "{language}");
        }
        assert!(lacks_of("/// ```no_run\n/// x\n/// ```\npub fn open() {}").is_empty());
    }

    #[test]
    fn errors_and_dropped_futures_are_told() {
        let both = ["errors a::open", "cancel-safety a::open"];
        for signature in [
            "pub async fn open() -> Result<(), E> {}",
            "pub fn open() -> impl Future<Output = Result<(), E>> + use<> {}",
            "pub fn open() -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {}",
        ] {
            assert_eq!(
                lacks_of(&format!("{EXAMPLE}{signature}")),
                both,
                "{signature}"
            );
        }
        let told = "/// # Errors\n/// None.\n/// # Cancel safety\n/// Yes.\n";
        let text = format!("{EXAMPLE}{told}pub async fn open() -> Result<(), E> {{}}");
        assert!(lacks_of(&text).is_empty());
    }

    #[test]
    fn a_trait_may_say_it_for_its_methods() {
        let method = "async fn attempt(&self) -> Result<(), E>;";
        let text = format!("{EXAMPLE}/// # Errors\n/// All.\npub trait Backend {{ {method} }}");
        assert_eq!(lacks_of(&text), ["cancel-safety a::Backend::attempt"]);
    }
}
