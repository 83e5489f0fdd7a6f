//! What sources are built with: the manifests of their crates, the versions of others' packages, and the compiler.
//!
//! A client library with other features, or a program that is optimised otherwise, is another program, although no line of its sources
//! changed. But whoever adds a crate that only tests need changes these files too, so only that part counts which a build
//! takes from them.

use std::path::{Path, PathBuf};

use super::DEPENDENCIES;

/// What else says how everything is compiled: whatever is about [`DEPENDENCIES`] is about these.
const OF_ALL: [&str; 2] = [MANIFEST, "rust-toolchain.toml"];
const MANIFEST: &str = "Cargo.toml";
/// Sections of a manifest, by how they begin, that change nothing of what is built: tests and lints, and what crates are called.
const OF_NO_BUILD: [&str; 7] = [
    "[dev-dependencies",
    "[lints",
    "[package",
    "[workspace]",
    "[workspace.package",
    "[workspace.lints",
    "[[",
];

/// These paths, with the manifest and the build script of each crate of which one is a source.
pub(super) fn with_manifests(root: &Path, about: &[&str]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for path in about {
        paths.push(PathBuf::from(path));
        let source = Path::new(path).ancestors().find(|of| of.ends_with("src"));
        if let Some(package) = source.and_then(Path::parent) {
            let beside = [MANIFEST, "build.rs"].map(|name| package.join(name));
            paths.extend(beside.into_iter().filter(|path| root.join(path).exists()));
        }
        if *path == DEPENDENCIES {
            let of_all = OF_ALL.map(PathBuf::from);
            paths.extend(of_all.into_iter().filter(|path| root.join(path).exists()));
        }
    }
    paths.sort();
    paths.dedup();
    paths
}

/// The part of a file that a build takes from it, where that is not all of it: of lock files and manifests.
pub(super) fn part(path: &Path, text: &str) -> Option<String> {
    match path.file_name()?.to_str()? {
        DEPENDENCIES => Some(of_others(text)),
        MANIFEST => Some(of_builds(text)),
        _ => None,
    }
}

/// What a lock file says of packages that are not of this workspace: which of them its crates name is none of it.
fn of_others(lock: &str) -> String {
    let packages = lock.split("[[package]]\n").skip(1);
    let of_others = packages.filter(|package| package.contains("\nsource = "));
    let lines = of_others.flat_map(|package| package.lines().take_while(|line| !line.is_empty()));
    let kept = ["name = ", "version = ", "source = ", "checksum = "];
    lines
        .filter(|line| kept.iter().any(|begin| line.starts_with(begin)))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Features, dependencies and profiles of a manifest, without comments. Crates of this workspace are told by their sources.
fn of_builds(manifest: &str) -> String {
    let mut text = String::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        // What a section is called may have a comment behind it.
        let name = line.split('#').next().unwrap_or_default().trim_end();
        if name.starts_with('[') && name.ends_with(']') {
            counts = !OF_NO_BUILD.iter().any(|begin| line.starts_with(begin));
        }
        let says = !line.is_empty() && !line.starts_with('#') && !line.contains("path = \"");
        if counts && says {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_A_CRATE: &str = r#"[package]
name = "one"
version = "0.1.0"

[features]
# Encrypted connections.
tls = ["dep:rustls"]

[dependencies]
one-core = { path = "../one-core" }
redis = { workspace = true, features = [
    "tokio-comp",
] }

[dev-dependencies]
tokio = { workspace = true, features = ["macros"] }

[[test]]
name = "far"

[lints]
workspace = true
"#;

    fn of(text: &str) -> String {
        part(Path::new("crates/one/Cargo.toml"), text).unwrap_or_default()
    }

    #[test]
    fn features_and_dependencies_are_of_the_build_and_tests_are_not() {
        let first = of(OF_A_CRATE);
        for (text, other) in [
            ("dep:rustls", "dep:native-tls"),
            ("\"tokio-comp\"", "\"aio\""),
            (
                "[dependencies]",
                "[profile.release]\nlto = true\n\n[dependencies]",
            ),
        ] {
            assert_ne!(first, of(&OF_A_CRATE.replace(text, other)), "{text}");
        }
        for (text, other) in [
            ("# Encrypted connections.", "# Encrypted."),
            ("0.1.0", "0.2.0"),
            ("\"macros\"", "\"macros\", \"test-util\""),
            ("\"far\"", "\"near\""),
            ("../one-core", "../core"),
        ] {
            assert_eq!(first, of(&OF_A_CRATE.replace(text, other)), "{text}");
        }
    }

    #[test]
    fn a_comment_behind_its_name_hides_no_section() {
        let noted = OF_A_CRATE.replace("[dependencies]", "[dependencies] # of everybody");
        let noted = noted.replace("[features]", "[features] # to choose from");
        assert!(of(&noted).contains("dep:rustls"));
        assert_ne!(of(&noted), of(&noted.replace("\"tokio-comp\"", "\"aio\"")));
    }

    #[test]
    fn sources_bring_the_manifest_of_their_crate() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let of = |about: &[&str]| {
            let paths = with_manifests(&root, about);
            let names = paths.iter().map(|path| path.to_string_lossy().into_owned());
            names.collect::<Vec<_>>()
        };
        let harness = [
            "bench-harness/src/failover/plan",
            "bench-harness/src/shared",
        ];
        assert_eq!(
            of(&harness),
            [
                "bench-harness/Cargo.toml",
                "bench-harness/build.rs",
                harness[0],
                harness[1]
            ]
        );
        let of_all = of(&[DEPENDENCIES, "crates/locktopus-protocol/lua"]);
        assert!(
            of_all.contains(&"rust-toolchain.toml".to_owned()),
            "{of_all:?}"
        );
        assert_eq!(of_all.len(), 4, "{of_all:?}");
        assert_eq!(of(&["docs/acl.md"]), ["docs/acl.md"]);
    }
}
