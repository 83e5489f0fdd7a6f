//! The tarballs: made, inspected, built against each other, and tested.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Part, Release};
use crate::cargo;
use crate::failure::{Done, fail};
use crate::shell::say;

/// Files that each tarball must have.
const FILES: [&str; 4] = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "Cargo.lock"];

impl Release<'_> {
    /// The folders where cargo unpacked the tarballs that others are built against, one for each
    /// crate.
    fn unpacked(&self) -> Vec<(String, PathBuf)> {
        let home = self
            .sh
            .var("CARGO_HOME")
            .unwrap_or_else(|| format!("{}/.cargo", self.sh.var("HOME").unwrap_or_default()));
        let registries =
            fs::read_dir(PathBuf::from(home).join("registry/src")).into_iter().flatten().flatten();
        // The name of a registry's folder begins with its host, then a dash. This registry is a
        // folder and has no host.
        let ours = registries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('-'))
            .map(|entry| entry.path());
        let sources = |registry: PathBuf| {
            self.names()
                .map(move |name| format!("{name}-{}", self.version))
                .map(move |crate_name| (registry.join(&crate_name), crate_name))
        };
        let found = ours.flat_map(sources).filter(|(folder, _)| folder.is_dir());
        found.map(|(folder, name)| (name, folder)).collect()
    }

    /// Removes what cargo kept of tarballs of the same version. Cargo assumes that a version never
    /// changes, so it would build a crate against the sources, or even the compiled code, of an
    /// earlier tarball of the same name.
    fn forget_earlier(&self) -> Done {
        let mut folders: Vec<_> = self.unpacked().into_iter().map(|(_, folder)| folder).collect();
        folders.push(self.target.join("package"));
        // Below a profile, which may be below a platform.
        let profiles = inside(&self.target);
        let profiles: Vec<_> =
            profiles.iter().flat_map(|one| inside(one)).chain(profiles.clone()).collect();
        let kept = profiles.iter().flat_map(|profile| inside(&profile.join(".fingerprint")));
        let ours = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("locktopus"))
        };
        folders.extend(kept.filter(ours));
        for folder in folders.iter().filter(|folder| folder.exists()) {
            fs::remove_dir_all(folder)?;
        }
        Ok(())
    }

    /// Checks that each crate was built against the current tarballs, if others depend on it.
    fn check_built_against(&self) -> Done {
        let unpacked = self.unpacked();
        let room = self.sh.scratch()?;
        for (name, sources) in &unpacked {
            let tarball = self.target.join(format!("package/{name}.crate"));
            self.sh.cmd("tar").arg("-xzf").arg(tarball).arg("-C").arg(room).run()?;
            let (same, said) = self
                .sh
                .cmd("diff")
                .args(["-r", "--exclude", ".cargo-ok"])
                .arg(room.join(name))
                .arg(sources)
                .told()?;
            if !same {
                fail!(
                    "crates were built against other sources than those in the tarball of {name}: {}\n{said}",
                    sources.display()
                );
            }
        }
        if unpacked.is_empty() {
            fail!("cargo unpacked no tarball, so none was built against another");
        }
        say(format!("built against {} of these tarballs", unpacked.len()));
        Ok(())
    }

    /// Makes the tarballs, and builds each of them.
    pub(super) fn make_tarballs(&self) -> Done {
        // For every tarball cargo would ask the registry about every dependency: thousands of
        // requests, and one may fail. The lock file names them all, so they are fetched once, and
        // the rest works offline.
        self.sh.cargo("fetch").run()?;
        self.forget_earlier()?;
        let quick = self.part == Part::Quick;
        let lenient = quick.then_some(["--allow-dirty", "--no-verify"]).into_iter().flatten();
        // One target directory for all, or each of them compiles every dependency again.
        let package = self
            .sh
            .cargo("package")
            .env("CARGO_TARGET_DIR", &self.target)
            .arg("--offline")
            .args(lenient);
        package.args(self.names().flat_map(|name| ["--package", name])).run()?;
        if quick { Ok(()) } else { self.check_built_against() }
    }

    /// Checks what a visitor of the registry sees of each crate.
    pub(super) fn check_tarballs(&self) -> Done {
        let lacking = |lacks: fn(&Value) -> bool| {
            self.packages
                .iter()
                .filter(|package| lacks(package))
                .map(cargo::name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let found = lacking(lacks_description);
        if !found.is_empty() {
            fail!("without description, licence, links, readme, keywords or categories: {found}");
        }
        let found = lacking(lacks_docs);
        if !found.is_empty() {
            fail!("without rust-version, or without docs of all features on docs.rs: {found}");
        }
        for package in &self.packages {
            let (name, address) =
                (cargo::name(package), package["repository"].as_str().unwrap_or_default());
            let tarball = self.tarball(name);
            if !tarball.is_file() {
                fail!("cargo made no tarball of {name}");
            }
            let content = self.sh.cmd("tar").arg("-tzf").arg(&tarball).read()?;
            let folder = format!("{name}-{}", self.version);
            for file in FILES {
                if !content.lines().any(|line| line == format!("{folder}/{file}")) {
                    fail!("the tarball of {name} has no {file}");
                }
            }
            let text = |files: &[String]| {
                self.sh.cmd("tar").arg("-xzOf").arg(&tarball).arg("--wildcards").args(files).read()
            };
            let readme = text(&[format!("{folder}/README.md")])?;
            let links = relative_links(&readme);
            if !links.is_empty() {
                fail!(
                    "the README of {name} has links that lead nowhere outside this repository: {}",
                    links.join(" ")
                );
            }
            let all = text(&[format!("{folder}/README.md"), format!("{folder}/src/*.rs")])?;
            let links = foreign_links(&all, address);
            if !links.is_empty() {
                fail!("{name} has links that are not below {address}: {}", links.join(" "));
            }
        }
        say(format!("{} tarballs", self.packages.len()));
        Ok(())
    }

    /// Unpacks the tarballs side by side, so that each finds the others and nothing else of this
    /// repository, and tests them.
    ///
    /// Tests of one crate need others that depend on it, which a registry cannot express. Such
    /// dependencies have only a path in the sources, and cargo leaves them out of tarballs. Here
    /// they are put back, with the version of the tarballs.
    pub(super) fn test_tarballs(&self) -> Done {
        // In folders of the same names, because some tests know the compiler's messages.
        let room = self.sh.scratch()?.join("unpacked");
        fs::create_dir_all(room.join("crates"))?;
        let mut workspace =
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n\n[patch.crates-io]\n"
                .to_owned();
        for package in &self.packages {
            let name = cargo::name(package);
            self.sh.cmd("tar").arg("-xzf").arg(self.tarball(name)).arg("-C").arg(&room).run()?;
            let folder = room.join("crates").join(name);
            fs::rename(room.join(format!("{name}-{}", self.version)), &folder)?;
            let manifest = folder.join("Cargo.toml");
            let text = fs::read_to_string(&manifest)?;
            fs::write(&manifest, text + &self.tests_need(package))?;
            workspace += &format!("{name} = {{ path = \"crates/{name}\" }}\n");
        }
        fs::write(room.join("Cargo.toml"), workspace)?;
        for file in ["Cargo.lock", "rust-toolchain.toml"] {
            fs::copy(self.sh.root.join(file), room.join(file))?;
        }
        let test = ["test", "--workspace", "--all-features", "--no-fail-fast", "--target-dir"];
        self.sh.cmd("cargo").args(test).arg(&self.target).dir(room).run()
    }

    /// The dependencies of a crate's tests that its tarball lacks, by version instead of by path:
    /// some are ordinary dependencies too, which come from the registry.
    fn tests_need(&self, package: &Value) -> String {
        let of_tests = package["dependencies"].as_array().into_iter().flatten().filter(|one| {
            one["kind"] == "dev"
                && one["path"].is_string()
                && one["req"] == "*"
                && self.names().any(|name| one["name"] == name)
        });
        let lines = of_tests.map(|one| {
            format!(
                "\n[dev-dependencies.{}]\nversion = \"={}\"\ndefault-features = {}\nfeatures = {}\n",
                cargo::name(one),
                self.version,
                one["uses_default_features"],
                one["features"]
            )
        });
        lines.collect()
    }
}

/// What is in a folder, if there is one.
fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn lacks_description(package: &Value) -> bool {
    let texts = ["description", "license", "repository", "homepage", "documentation", "readme"];
    let empty = |list: &str| package[list].as_array().is_none_or(Vec::is_empty);
    texts.iter().any(|text| package[*text].is_null()) || empty("keywords") || empty("categories")
}

/// The metadata that docs.rs and cargo need. A program has no page on docs.rs.
fn lacks_docs(package: &Value) -> bool {
    let kinds = package["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|target| target["kind"].as_array())
        .flatten();
    let library = kinds.into_iter().any(|kind| kind == "lib" || kind == "proc-macro");
    package["rust_version"].is_null()
        || (library && package["metadata"]["docs"]["rs"]["all-features"] != true)
}

/// Links of a page that are neither addresses nor places in the page: `](...)`, `src="..."` and
/// `[name]: ...`.
fn relative_links(page: &str) -> Vec<&str> {
    let until = |rest: &'static str| move |text: &str| text.find(rest).unwrap_or(text.len());
    let mut found: Vec<&str> = page
        .split("](")
        .skip(1)
        .map(|rest| &rest[..until(")")(rest)])
        .filter(|link| !link.starts_with('#'))
        .collect();
    found.extend(page.split("src=\"").skip(1).map(|rest| &rest[..until("\"")(rest)]));
    let definitions =
        page.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]:"));
    found.extend(definitions.filter_map(|(_, target)| target.split_whitespace().next()));
    found.retain(|link| {
        !link.is_empty() && !link.starts_with("https://") && !link.starts_with("http://")
    });
    found
}

/// Addresses of a repository with this project's name that are not below its own address.
fn foreign_links<'a>(text: &'a str, address: &str) -> Vec<&'a str> {
    let words = text.split(|letter: char| letter.is_whitespace() || ")>\"".contains(letter));
    let links = words.filter_map(|word| word.find("https://").map(|at| &word[at..]));
    let of_a_repository = |link: &&str| {
        let mut parts = link["https://".len()..].split('/');
        let (host, owner, name) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let plain = |text: &str, also: char| {
            !text.is_empty()
                && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == also)
        };
        let rest = name.strip_prefix("locktopus");
        plain(host, '.')
            && plain(owner, '-')
            && rest.is_some_and(|rest| {
                !rest.starts_with(|next: char| next == '-' || next.is_ascii_lowercase())
            })
    };
    links.filter(of_a_repository).filter(|link| !link.starts_with(address)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up_release;
    use super::*;
    use crate::made_up::{said, shell};

    /// Tarballs are built against each other, not against earlier ones of the same version.
    #[test]
    fn crates_are_built_against_the_tarballs_of_now() {
        let sh = crate::made_up::on_the_real_path();
        let home = sh.scratch().unwrap().join("home");
        sh.export("CARGO_HOME", home.to_string_lossy());
        let release = made_up_release::of(&sh, &["one-a"]);
        let (ours, others) =
            (home.join("registry/src/-0123"), home.join("registry/src/index.crates.io-0123"));
        let prints = release.target.join("debug/.fingerprint");
        let packed = sh.scratch().unwrap().join("packed");
        for folder in [
            ours.join("one-a-1.2.3"),
            ours.join("one-a-1.2.2"),
            others.join("one-a-1.2.3"),
            prints.join("locktopus-0123"),
            release.target.join("x86_64-unknown/debug/.fingerprint/locktopus-0123"),
            prints.join("tokio-0123"),
            packed.join("one-a-1.2.3"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(ours.join("one-a-1.2.3/.cargo-ok"), "").unwrap();
        fs::write(ours.join("one-a-1.2.3/lib.rs"), "new").unwrap();
        fs::write(packed.join("one-a-1.2.3/lib.rs"), "new").unwrap();
        sh.cmd("tar")
            .arg("-czf")
            .arg(release.tarball("one-a"))
            .arg("-C")
            .arg(packed)
            .arg("one-a-1.2.3")
            .run()
            .unwrap();
        release.check_built_against().unwrap();
        fs::write(ours.join("one-a-1.2.3/lib.rs"), "old").unwrap();
        assert!(
            said(release.check_built_against())
                .contains("other sources than those in the tarball of one-a-1.2.3")
        );
        release.forget_earlier().unwrap();
        assert!(
            !ours.join("one-a-1.2.3").exists(),
            "it keeps the sources of an earlier tarball of this version"
        );
        assert!(!release.target.join("x86_64-unknown/debug/.fingerprint/locktopus-0123").exists());
        assert!(
            !prints.join("locktopus-0123").exists(),
            "it keeps what was compiled of an earlier tarball"
        );
        assert!(
            ours.join("one-a-1.2.2").exists()
                && others.join("one-a-1.2.3").exists()
                && prints.join("tokio-0123").exists()
        );
        assert!(said(release.check_built_against()).contains("cargo unpacked no tarball"));
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = "[a](https://x) [b](#c) [d](docs/e.md) <img src=\"f.png\"> <img src=\"https://g\">\n[h]: docs/i.md\n[j]: http://k\n";
        assert_eq!(relative_links(page), ["docs/e.md", "f.png", "docs/i.md"]);
        let ours = "https://github.com/locktopus/locktopus";
        let page = format!(
            "({ours}/issues) <https://example.com/some-one/locktopus/x> https://docs.rs/x/locktopus-core/y {ours}"
        );
        assert_eq!(foreign_links(&page, ours), ["https://example.com/some-one/locktopus/x"]);
    }

    #[test]
    fn what_an_index_shows_is_there() {
        let whole = serde_json::json!({ "description": "a", "license": "b", "repository": "c", "homepage": "d", "documentation": "e",
            "readme": "f", "keywords": ["g"], "categories": ["h"], "rust_version": "1.88", "targets": [{ "kind": ["lib"] }],
            "metadata": { "docs": { "rs": { "all-features": true } } } });
        assert!(!lacks_description(&whole) && !lacks_docs(&whole));
        for field in ["description", "readme"] {
            let mut part = whole.clone();
            part[field] = Value::Null;
            assert!(lacks_description(&part), "{field}");
        }
        let mut part = whole.clone();
        part["metadata"] = Value::Null;
        assert!(lacks_docs(&part));
        part["targets"][0]["kind"][0] = "bin".into();
        assert!(!lacks_docs(&part));
    }

    #[test]
    fn dependencies_of_tests_are_put_back() {
        let sh = shell();
        let release = made_up_release::of(&sh, &["one-a", "one-b"]);
        let need = |name: &str, kind: &str, req: &str| serde_json::json!({ "name": name, "kind": kind, "req": req, "path": "/x", "uses_default_features": false, "features": ["f"] });
        let all = [
            need("one-b", "dev", "*"),
            need("one-b", "normal", "*"),
            need("one-b", "dev", "^1"),
            need("other", "dev", "*"),
        ];
        let package = serde_json::json!({ "dependencies": all });
        let expected = "\n[dev-dependencies.one-b]\nversion = \"=1.2.3\"\ndefault-features = false\nfeatures = [\"f\"]\n";
        assert_eq!(release.tests_need(&package), expected);
    }
}
