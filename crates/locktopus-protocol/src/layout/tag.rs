//! How Redisson names the keys beside an object.

use std::borrow::Cow;

/// Redisson's `prefixName`: the name becomes a hash tag unless it contains a brace.
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
