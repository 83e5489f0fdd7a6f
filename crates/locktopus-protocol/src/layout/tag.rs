//! How Redisson names what it keeps beside an object.

use std::borrow::Cow;

/// Redisson's `prefixName`: the name becomes a hash tag unless it has a brace already.
pub(crate) fn prefix_name(prefix: &str, name: &str) -> String {
    format!("{prefix}:{}", tag(name))
}

pub(crate) fn tag(name: &str) -> Cow<'_, str> {
    if name.contains('{') {
        name.into()
    } else {
        format!("{{{name}}}").into()
    }
}
