//! The scripts that servers know, alone and as batches, and how they are called.

use std::cell::OnceCell;

use locktopus_model::redis::Reply as Told;
use locktopus_protocol::scripts::{self, Script};

thread_local! {
    static SCRIPTS: OnceCell<Vec<Known>> = const { OnceCell::new() };
}

/// A script. `of` is set for a batch: the script of its members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) script: &'static Script,
    pub(crate) of: Option<&'static Script>,
}

fn scripts<T>(look: impl FnOnce(&[Known]) -> T) -> T {
    SCRIPTS.with(|known| {
        look(known.get_or_init(|| {
            let alone = || scripts::all().filter(|it| !it.name.ends_with("_together"));
            let batches = alone().map(|one| (one.together(), Some(one)));
            let all = batches.chain(alone().map(|script| (script, None)));
            all.map(|(script, of)| Known { script, of }).collect()
        }))
    })
}

/// The script with this digest.
pub(crate) fn known_script(digest: &str) -> Option<Known> {
    scripts(|all| {
        let mut last_first = all.iter().rev();
        let found = last_first.find(|known| known.script.digest() == digest);
        found.copied()
    })
}

/// The script with this text.
pub(crate) fn script_of(text: &str) -> Option<Known> {
    let found = |all: &[Known]| all.iter().find(|it| it.script.source == text).copied();
    scripts(found)
}

/// The keys and the arguments of a call.
pub(crate) fn split(words: &[Vec<u8>]) -> (&[Vec<u8>], &[Vec<u8>]) {
    words[3..].split_at(number(&words[2]))
}

fn number(word: &[u8]) -> usize {
    let number = std::str::from_utf8(word).ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The calls of the members of a batch.
pub(crate) fn members(words: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let (keys, [count, own, arguments @ ..]) = split(words) else {
        return Vec::new();
    };
    let own = own.split(|byte| *byte == b' ').map(number);
    let own: Vec<usize> = own.filter(|place| *place > 0).collect();
    let further = (number(count) - 1) * own.len();
    let (first, further) = arguments.split_at(arguments.len() - further);
    let mut further = further.iter().cloned();
    let (mut arguments, each) = (first.to_vec(), keys.len() / number(count));
    let head = [&words[..2], &[each.to_string().into_bytes()]].concat();
    let mut members = Vec::new();
    for keys in keys.chunks(each) {
        if !members.is_empty() {
            for (place, word) in own.iter().zip(&mut further) {
                arguments[place - 1] = word;
            }
        }
        members.push([&head, keys, &arguments].concat());
    }
    members
}

/// The reply of a batch whose members reply this.
pub(crate) fn together(alone: &[Told]) -> Told {
    let failed = alone
        .iter()
        .enumerate()
        .filter_map(|(place, told)| match told {
            Told::Error(line) => Some([
                Told::Int(i64::try_from(place).unwrap_or(i64::MAX)),
                Told::Bulk(line.clone().into_bytes()),
            ]),
            _ => None,
        });
    let replies = alone.iter().map(|told| match told {
        Told::Error(_) => Told::Nil,
        told => told.clone(),
    });
    Told::Array(replies.chain(failed.flatten()).collect())
}
