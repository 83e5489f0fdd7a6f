//! One mistake in the text of scripts.

use locktopus_model::layout::Kind;

use super::{Patch, WrongScript};

pub(super) struct Wrong {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) mixed: bool,
    pub(super) script: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) more: &'static [(&'static str, &'static str)],
}

impl Wrong {
    pub(super) fn script(&self) -> WrongScript {
        let Self {
            name,
            kind,
            mixed,
            script,
            from,
            to,
            more,
        } = *self;
        let patch = Patch {
            script,
            from,
            to,
            more,
        };
        WrongScript {
            name,
            kind,
            mixed,
            patch,
        }
    }

    /// With a further change.
    pub(super) const fn and(self, more: &'static [(&'static str, &'static str)]) -> Self {
        Self { more, ..self }
    }
}

pub(super) const fn wrong(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Wrong {
    Wrong {
        name,
        kind,
        mixed: false,
        script,
        from,
        to,
        more: &[],
    }
}

/// Noticed only where others take the name for another kind, or lose a number.
pub(super) const fn mixed(
    name: &'static str,
    kind: Kind,
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Wrong {
    Wrong {
        mixed: true,
        ..wrong(name, kind, script, from, to)
    }
}

/// A token is published, and only those who were counted hearing it are given the lock.
pub(super) const TOKEN_FIRST: [&str; 2] = [
    "      leave(owner, record)\n      take(owner, lease, mode, tonumber(permits))\n      \
     say(to, string.format('%.0f', token), owner)\n      granted = granted + 1\n      \
     if exclusive then\n        return 'busy', granted\n      end\n",
    "      if say(to, string.format('%.0f', token), owner) ~= 0 then\n        \
     leave(owner, record)\n        take(owner, lease, mode, tonumber(permits))\n        granted = granted + 1\n        \
     if exclusive then\n          return 'busy', granted\n        end\n      \
     else\n        skip = skip + 1\n      end\n",
];

/// Listeners are not counted before that.
pub(super) const UNCOUNTED: &[(&str, &str)] = &[(
    "    if heard[inbox] then\n      return owner, record",
    "    if true then\n      return owner, record",
)];
