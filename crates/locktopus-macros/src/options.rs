//! The options in the attribute, checked.

use std::time::Duration;

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, LitStr, Token};

/// The value of `locktopus::MIN_LEASE`, which a macro cannot read.
const MIN_LEASE: Duration = Duration::from_millis(20);

const OPTIONS: &str =
    "name, locks, kind, wait, lease, fixed_lease, at_least, max_hold, when_busy and bind";

/// The options as written, each at most once.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) name: Option<LitStr>,
    pub(crate) locks: Option<Expr>,
    pub(crate) kind: Option<Kind>,
    pub(crate) wait: Option<Timed>,
    pub(crate) lease: Option<Timed>,
    pub(crate) fixed_lease: Option<Timed>,
    pub(crate) at_least: Option<Timed>,
    pub(crate) max_hold: Option<Timed>,
    pub(crate) when_busy: Option<WhenBusy>,
    pub(crate) bind: Option<Ident>,
}

/// A duration, and where it was written.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) time: Duration,
    pub(crate) span: Span,
}

/// A kind of lock.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The result of `LockKind::can_linger`, which a macro cannot call.
    pub(crate) lingers: bool,
    /// The method of `Locktopus` that takes the name.
    pub(crate) method: &'static str,
    /// Turns the method's result into a request.
    pub(crate) then: &'static str,
}

/// The behaviour if another owner holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenBusy {
    Wait,
    Skip,
    Error,
}

/// Every kind that can be held, by `LockKind::as_str`. The first one is the default.
pub(crate) const KINDS: [(&str, Kind); 7] = [
    ("lock", kind(true, "lock", "")),
    ("mutex", kind(true, "mutex", "")),
    ("fair_lock", kind(true, "fair_lock", "")),
    ("read_lock", kind(false, "rw_lock", ".read()")),
    ("write_lock", kind(false, "rw_lock", ".write()")),
    ("semaphore", kind(false, "semaphore", ".permits(1)")),
    (
        "permit_semaphore",
        kind(false, "permit_semaphore", ".permits(1)"),
    ),
];

const fn kind(lingers: bool, method: &'static str, then: &'static str) -> Kind {
    Kind {
        lingers,
        method,
        then,
    }
}

const WHEN_BUSY: [(&str, WhenBusy); 3] = [
    ("wait", WhenBusy::Wait),
    ("skip", WhenBusy::Skip),
    ("error", WhenBusy::Error),
];

/// One option.
struct One {
    key: Ident,
    value: Value,
}

enum Value {
    Text(LitStr),
    Expression(Expr),
    Name(Ident),
}

impl Parse for One {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        if !input.peek(Token![=]) {
            let message = format!("`{key}` needs a value: `{key} = ...`");
            return Err(syn::Error::new(key.span(), message));
        }
        input.parse::<Token![=]>()?;
        let value = match key.to_string().as_str() {
            "locks" => Value::Expression(input.parse()?),
            "bind" => Value::Name(input.parse().map_err(|error: syn::Error| {
                let message = "`bind` takes a name without quotes, as in `bind = lease`";
                syn::Error::new(error.span(), message)
            })?),
            _ => Value::Text(input.parse().map_err(|error: syn::Error| {
                syn::Error::new(error.span(), format!("`{key}` takes a text in quotes"))
            })?),
        };
        Ok(Self { key, value })
    }
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut written = Self::default();
        for one in Punctuated::<One, Token![,]>::parse_terminated(input)? {
            written.take(one)?;
        }
        Ok(written)
    }
}

impl Written {
    fn take(&mut self, One { key, value }: One) -> syn::Result<()> {
        let name = key.to_string();
        let old = match (name.as_str(), value) {
            ("locks", Value::Expression(locks)) => self.locks.replace(locks).is_some(),
            ("bind", Value::Name(bind)) => self.bind.replace(bind).is_some(),
            ("name", Value::Text(text)) => self.name.replace(text).is_some(),
            ("kind", Value::Text(text)) => self.kind.replace(word(&text, &KINDS)?).is_some(),
            ("when_busy", Value::Text(text)) => {
                self.when_busy.replace(word(&text, &WHEN_BUSY)?).is_some()
            }
            ("wait", Value::Text(text)) => self.wait.replace(time(&text)?).is_some(),
            ("lease", Value::Text(text)) => self.lease.replace(lease(&text)?).is_some(),
            ("fixed_lease", Value::Text(text)) => self.fixed_lease.replace(lease(&text)?).is_some(),
            ("at_least", Value::Text(text)) => {
                self.at_least.replace(longer_than_zero(&text)?).is_some()
            }
            ("max_hold", Value::Text(text)) => {
                self.max_hold.replace(longer_than_zero(&text)?).is_some()
            }
            _ => {
                let message = format!("there is no option `{name}`; there are {OPTIONS}");
                return Err(syn::Error::new(key.span(), message));
            }
        };
        if old {
            let message = format!("`{name}` is given twice");
            return Err(syn::Error::new(key.span(), message));
        }
        Ok(())
    }
}

fn word<T: Copy>(text: &LitStr, words: &[(&str, T)]) -> syn::Result<T> {
    let value = text.value();
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let message = format!("{value:?} is none of {}", words.join(", "));
        syn::Error::new(text.span(), message)
    })
}

fn time(text: &LitStr) -> syn::Result<Timed> {
    let (value, span) = (text.value(), text.span());
    let units = value.split(|c: char| !c.is_alphabetic());
    let known = |unit| ["", "ns", "us", "ms", "s", "m", "h", "d"].contains(&unit);
    let time = humantime::parse_duration(&value).ok();
    let time = time.filter(|_| units.into_iter().all(known)).ok_or_else(|| {
        let message = format!(
            "{value:?} is no duration in the units ms, s, m, h and d, such as \"500ms\", \"30s\" or \"1m 30s\""
        );
        syn::Error::new(span, message)
    })?;
    Ok(Timed { time, span })
}

fn longer_than_zero(text: &LitStr) -> syn::Result<Timed> {
    let timed = time(text)?;
    if timed.time.is_zero() {
        return Err(syn::Error::new(timed.span, "must be longer than zero"));
    }
    Ok(timed)
}

fn lease(text: &LitStr) -> syn::Result<Timed> {
    let timed = time(text)?;
    if timed.time < MIN_LEASE {
        let message = "a lease must be at least 20ms, or the way to the server uses it up";
        return Err(syn::Error::new(timed.span, message));
    }
    Ok(timed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_library() {
        let kinds = locktopus::LockKind::all();
        let held = kinds.iter().filter(|kind| kind.is_held());
        let known = held.map(|kind| (kind.as_str(), kind.can_linger()));
        assert!(known.eq(KINDS.iter().map(|(word, kind)| (*word, kind.lingers))));
    }
}
