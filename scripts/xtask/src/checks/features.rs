//! Every crate with every set of features that a program may ask for.

use crate::cargo;
use crate::failure::{Done, fail};
use crate::shell::{Shell, minutes, say};

pub(crate) const HELP: &str = "\
Checks every published crate without features, with each feature alone, with each pair, and with all of them, because a
program may enable any of these. Reads the features and crates from the manifests.

  scripts/features           all crates
  scripts/features --every   every set of features, also of three and more; one crate has hundreds
  scripts/features CRATE...  only these crates; --every may come first

Leaves out dependencies of tests, as a user's build does. A warning is an error. Needs no server.";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let (every, asked) = match arguments {
        [first, rest @ ..] if first == "--every" => (true, rest),
        [first, ..] if first.starts_with('-') => {
            fail!("unknown option {first}; --help shows what there is")
        }
        all => (false, all),
    };
    let packages = cargo::published(sh)?;
    for crate_name in asked {
        if !packages.iter().any(|package| cargo::name(package) == crate_name) {
            fail!("there is no crate {crate_name} that is published");
        }
    }
    let (mut done, mut failed) = (0, Vec::new());
    for package in &packages {
        let name = cargo::name(package);
        if !asked.is_empty() && !asked.iter().any(|one| one == name) {
            continue;
        }
        let features = package["features"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(feature, _)| feature.as_str());
        let features: Vec<_> = features.filter(|feature| *feature != "default").collect();
        let sets = if every { every_set(&features) } else { pairs(&features) };
        say(format!("{name}: {} sets, at {}", sets.len(), minutes(sh.seconds())));
        for set in sets {
            if check(sh, name, &set)? {
                done += 1;
            } else {
                failed.push(format!("{name} [{}]", if set.is_empty() { "none" } else { &set }));
            }
        }
    }
    if !failed.is_empty() {
        fail!("do not build: {}", failed.join("; "));
    } else if done == 0 {
        fail!("there is nothing to check");
    }
    say(format!("{done} sets of features in {}", minutes(sh.seconds())));
    Ok(())
}

/// Checks one crate with this set of its features: one crate at a time and without its tests,
/// because the workspace's other crates enable features of their own.
pub(crate) fn check(sh: &Shell, name: &str, features: &str) -> Done<bool> {
    let selection = ["--quiet", "--package", name, "--no-default-features", "--features", features];
    Ok(sh.cargo("clippy").args(selection).args(["--", "--deny", "warnings"]).code()? == 0)
}

fn pairs(all: &[&str]) -> Vec<String> {
    let mut sets = vec![String::new()];
    sets.extend(all.iter().map(|one| (*one).to_owned()));
    for (at, first) in all.iter().enumerate() {
        sets.extend(all[at + 1..].iter().map(|second| format!("{first},{second}")));
    }
    if all.len() > 2 {
        sets.push(all.join(","));
    }
    sets
}

fn every_set(all: &[&str]) -> Vec<String> {
    let chosen =
        |number: u32| (0..all.len()).filter(move |bit| number >> bit & 1 == 1).map(|bit| all[bit]);
    (0..1_u32 << all.len()).map(|number| chosen(number).collect::<Vec<_>>().join(",")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_none_each_two_and_all() {
        assert_eq!(pairs(&[]), [""]);
        assert_eq!(pairs(&["a", "b"]), ["", "a", "b", "a,b"]);
        assert_eq!(pairs(&["a", "b", "c"]), ["", "a", "b", "c", "a,b", "a,c", "b,c", "a,b,c"]);
        assert_eq!(every_set(&["a", "b", "c"]), ["", "a", "b", "a,b", "c", "a,c", "b,c", "a,b,c"]);
    }

    #[test]
    fn what_is_unknown_is_refused_before_anything_is_built() {
        let sh = crate::made_up::shell();
        crate::made_up::program(
            &sh,
            "cargo",
            r#"echo '{"packages":[{"name":"one","publish":null,"features":{}}]}'"#,
        );
        assert!(crate::made_up::said(main(&sh, &["--no-such".into()])).contains("unknown option"));
        assert!(crate::made_up::said(main(&sh, &["two".into()])).contains("there is no crate two"));
        assert_eq!(main(&sh, &["one".into()]), Ok(()));
    }
}
