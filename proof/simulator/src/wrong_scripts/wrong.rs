//! Helpers for one mistake in a script text.

use locktopus_model::layout::Kind;

use super::{Patch, WrongScript};

impl WrongScript {
    /// Adds further changes.
    pub(super) const fn and(mut self, more: &'static [(&'static str, &'static str)]) -> Self {
        self.patch.more = more;
        self
    }
}

pub(super) const fn wrong(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> WrongScript {
    WrongScript {
        name,
        kind,
        mixed: false,
        patch: Patch {
            script,
            from,
            to,
            more: &[],
        },
    }
}

/// A mistake that shows only if others use the name as another kind, or lose a number.
pub(super) const fn mixed(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> WrongScript {
    WrongScript {
        mixed: true,
        ..wrong(name, kind, script, from, to)
    }
}

/// Publishes the token first, and grants the lock only if a listener received it.
pub(super) const TOKEN_FIRST: [&str; 2] = [
    "      leave(owner, record)\n      take(owner, lease, mode, tonumber(permits))\n      \
     say(to, string.format('%.0f', token), owner)\n      granted = granted + 1\n      \
     if exclusive then\n        return 'busy', granted, kept\n      end\n",
    "      if say(to, string.format('%.0f', token), owner) ~= 0 then\n        \
     leave(owner, record)\n        take(owner, lease, mode, tonumber(permits))\n        granted = granted + 1\n        \
     if exclusive then\n          return 'busy', granted, kept\n        end\n      \
     else\n        skip = skip + 1\n      end\n",
];

/// Does not count listeners before that.
pub(super) const UNCOUNTED: &[(&str, &str)] = &[(
    "    if heard[inbox] then\n      return owner, record",
    "    if true then\n      return owner, record",
)];
