//! The locks to acquire together: each once, in groups, in the same order for every process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{LockKind, LockName, LockTarget, Mode, OptionError};

use crate::engine::acquisition::{Plan, Wait};
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::lock_request::LockRequest;

/// A request, and the label of its backend.
pub(super) struct Wanted {
    pub(super) label: Option<String>,
    pub(super) request: LockRequest,
}

pub(super) struct Member {
    pub(super) backend: Arc<str>,
    pub(super) target: LockTarget,
    request: LockRequest,
}

impl Member {
    pub(super) fn services(&self) -> &Arc<Services> {
        self.request.services()
    }

    /// The plan of this lock. Cancellation is for all locks together.
    pub(super) fn plan(&self, wait: Wait) -> Result<Plan, LockError> {
        let mut plan = self.request.plan(wait)?;
        plan.cancel = None;
        Ok(plan)
    }

    /// How long after all of them were taken it stays held, even if it is released sooner.
    pub(super) fn hold_at_least(&self) -> Duration {
        self.request.hold_at_least_for()
    }

    pub(super) fn cancels(&self) -> Result<Option<tokio_util::sync::CancellationToken>, LockError> {
        Ok(self.request.plan(Wait::Not)?.cancel)
    }
}

/// Locks that one request acquires, in the order of their names. Never empty.
pub(super) struct Unit {
    pub(super) members: Vec<Member>,
}

/// The position of a unit in the order. The group comes before the names. Otherwise the order of
/// two groups would depend on the names requested, and two processes could wait for each other.
type UnitOrder = (Arc<str>, GroupKey);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    Together(u32),
    Alone(LockName),
}

pub(super) fn units(wanted: Vec<Wanted>) -> Result<Vec<Unit>, LockError> {
    if wanted.is_empty() {
        return Err(OptionError::new("locks", 0, "at least one lock is needed").into());
    }
    let mut backends = Vec::new();
    let mut members: BTreeMap<(Arc<str>, LockName), Member> = BTreeMap::new();
    for Wanted { label, request } in wanted {
        let target = request.plan(Wait::Not)?.target;
        let backend = label_of(&mut backends, label, request.services())?;
        let key = (Arc::clone(&backend), target.name().clone());
        let member = Member {
            backend,
            target,
            request,
        };
        match members.entry(key) {
            Entry::Vacant(free) => _ = free.insert(member),
            Entry::Occupied(mut first) => {
                if needs_second(&first.get().target, &member.target)? {
                    first.insert(member);
                }
            }
        }
    }
    each_key_once(members.values())?;
    let mut units: BTreeMap<UnitOrder, Unit> = BTreeMap::new();
    for ((backend, name), member) in members {
        let group = member.services().backend.group(&member.target);
        let group = group.map_or(GroupKey::Alone(name), GroupKey::Together);
        let unit = units.entry((backend, group));
        let empty = || Unit {
            members: Vec::new(),
        };
        unit.or_insert_with(empty).members.push(member);
    }
    Ok(units.into_values().collect())
}

/// Two names may be one key, if a mutex is shared with a library that adds a prefix. Taken together
/// they would count as two locks but be one; taken one after the other, the second would wait for
/// the first.
fn each_key_once<'a>(members: impl Iterator<Item = &'a Member>) -> Result<(), OptionError> {
    let mut keys = BTreeMap::new();
    for member in members {
        let target = &member.target;
        if let Some(first) = keys.insert((&member.backend, target.key()), target) {
            let rule = format!("both are the key {:?}; ask for one of them", target.key());
            return Err(OptionError::new(
                "lock",
                format!("{first} and {target}"),
                rule,
            ));
        }
    }
    Ok(())
}

type NamedEngine = (Arc<str>, Arc<Services>);

/// The label of a backend. Two backends with the same label would have no order.
fn label_of(
    known: &mut Vec<NamedEngine>,
    label: Option<String>,
    services: &Arc<Services>,
) -> Result<Arc<str>, OptionError> {
    let description = || services.backend.info().description.clone();
    let label: Arc<str> = label.unwrap_or_else(description).into();
    for (other, theirs) in &*known {
        let same = Arc::ptr_eq(theirs, services);
        if same && *other == label {
            return Ok(label);
        }
        if same {
            let rule = format!("the same backend is called {other:?} for another lock");
            return Err(OptionError::new("backend", label, rule));
        }
        if *other == label {
            let rule = "two backends are called so; give each a label of its own with `add_on`, the same in every \
                        process";
            return Err(OptionError::new("backend", label, rule));
        }
    }
    known.push((Arc::clone(&label), Arc::clone(services)));
    Ok(label)
}

/// Whether the second request for a name replaces the first.
fn needs_second(first: &LockTarget, second: &LockTarget) -> Result<bool, OptionError> {
    let rule = match (first.kind(), second.kind()) {
        (LockKind::Read, LockKind::Write) => return Ok(true),
        (LockKind::Write, LockKind::Read) => return Ok(false),
        (a, b) if a != b => "is asked for as two kinds, which do not exclude each other",
        (a, _) if a.mode() == Mode::Permits => {
            "is asked for twice; ask once for all permits that are needed"
        }
        _ => return Ok(false),
    };
    let names = format!("{first} and {second}");
    Err(OptionError::new("lock", names, rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Locktopus, MutexProfile};
    use locktopus_memory::MemoryBackend;

    fn wanted(label: &str, request: LockRequest) -> Wanted {
        let label = Some(label.to_owned());
        Wanted { label, request }
    }

    fn order(units: &[Unit]) -> Vec<Vec<String>> {
        let name = |member: &Member| format!("{}/{}", member.backend, member.target);
        let unit = |unit: &Unit| unit.members.iter().map(name).collect();
        units.iter().map(unit).collect()
    }

    #[tokio::test]
    async fn each_lock_once_in_groups_and_in_order() {
        let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
        let a = Locktopus::builder(a).build().unwrap();
        let b = Locktopus::builder(b).build().unwrap();
        let write = b.rw_lock("x").write().for_many().unwrap();
        let set = units(vec![
            wanted("b", b.lock("z")),
            wanted("b", b.rw_lock("x").read()),
            wanted("a", a.lock("n")),
            wanted("b", write),
            wanted("a", a.lock("m")),
            wanted("a", a.lock("n")),
        ])
        .unwrap();
        let expected = [
            vec!["a/lock \"m\"", "a/lock \"n\""],
            vec!["b/write_lock \"x\"", "b/lock \"z\""],
        ];
        assert_eq!(order(&set), expected);
    }

    #[tokio::test]
    async fn what_has_no_order_is_refused() {
        let locks = || Locktopus::builder(MemoryBackend::new()).build().unwrap();
        let (a, b) = (locks(), locks());
        let bare = |request| Wanted {
            label: None,
            request,
        };
        let python = |name| bare(a.mutex_as(name, MutexProfile::python_redis_lock()));
        for (set, part) in [
            (vec![], "at least one"),
            (vec![bare(a.lock("x")), bare(b.lock("y"))], "two backends"),
            (
                vec![wanted("l", a.lock("x")), wanted("m", a.lock("y"))],
                "for another lock",
            ),
            (vec![bare(a.lock("x")), bare(a.mutex("x"))], "two kinds"),
            (vec![bare(a.lock("lock:x")), python("x")], "one of them"),
            (vec![python("x"), bare(a.mutex("lock:x"))], "one of them"),
        ] {
            let error = units(set).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
