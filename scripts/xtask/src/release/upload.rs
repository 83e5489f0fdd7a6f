//! The upload, which may stop midway and continue later.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::Value;

use super::Release;
use crate::failure::{Done, fail};
use crate::shell::say;

const INDEX: &str = "https://index.crates.io";

/// Asks on the terminal, even if the input is redirected.
fn ask(question: &str) -> Done<String> {
    let mut terminal = fs::File::options().read(true).write(true).open("/dev/tty")?;
    terminal.write_all(question.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

impl Release<'_> {
    /// The registry's entry of a crate: a line of JSON for each version.
    fn ask_index(&self, name: &str) -> Done<String> {
        let file = self.sh.scratch()?.join("index");
        let address = format!("{INDEX}/{}/{}/{name}", &name[..2], &name[2..4]);
        let curl = self
            .sh
            .cmd("curl")
            .args(["--silent", "--show-error", "--max-time", "60", "--output"])
            .arg(&file);
        let (answered, code) = curl.args(["--write-out", "%{http_code}", &address]).told()?;
        if !answered {
            fail!("{INDEX} cannot be asked for {name}: {code}");
        }
        match code.as_str() {
            "200" => Ok(fs::read_to_string(file)?),
            "404" | "410" => Ok(String::new()),
            _ => fail!("{INDEX} answers {code} for {name}"),
        }
    }

    /// The crates that are still to be uploaded. An uploaded one must equal ours, because an upload
    /// cannot be undone.
    pub(super) fn missing(&self) -> Done<Vec<&str>> {
        let mut missing = Vec::new();
        for name in self.names() {
            let known = self.ask_index(name)?;
            let versions =
                known.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let Some(found) = versions.into_iter().find(|one| one["vers"] == self.version.as_str())
            else {
                missing.push(name);
                continue;
            };
            let sum = self.sh.cmd("sha256sum").arg(self.tarball(name)).read()?;
            if found["cksum"] != sum.split(' ').next().unwrap_or_default() {
                fail!(
                    "the index has {name} {} already, and not this one (other sources, or another cargo): raise the version in \
                     Cargo.toml",
                    self.version
                );
            }
        }
        Ok(missing)
    }

    pub(super) fn upload(&self) -> Done {
        self.upload_asking(ask)
    }

    fn upload_asking(&self, mut ask: impl FnMut(&str) -> Done<String>) -> Done {
        let version = &self.version;
        let mut missing = self.missing()?;
        if !missing.is_empty() {
            let (some, all) = (missing.len(), self.packages.len());
            let answer = ask(&format!(
                "upload {some} of {all} crates of version {version}, for good? Type the version: "
            ))?;
            if answer != *version {
                fail!("nothing was uploaded");
            }
        }
        while !missing.is_empty() {
            let publish =
                self.sh.cargo("publish").env("CARGO_TARGET_DIR", &self.target).foreground();
            if publish.args(missing.iter().flat_map(|name| ["--package", name])).code()? == 0 {
                break;
            }
            // cargo also fails if it only waited in vain for the registry to show the upload.
            missing = self.missing()?;
            if !missing.is_empty() {
                ask(&format!(
                    "not uploaded yet: {}. What cargo says above says why. Enter goes on with these, Ctrl-C ends: ",
                    missing.join(" ")
                ))?;
            }
        }
        let tag = format!("v{version}");
        self.sh
            .cmd("git")
            .args(["tag", "--annotate", &tag, "--message", &format!("Locktopus {version}")])
            .foreground()
            .run()?;
        say(format!("released. Now: git push origin {tag}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up_release;
    use super::*;
    use crate::made_up::{program, said, shell};
    use crate::shell::Shell;

    /// A cargo that uploads two crates and is then refused, as crates.io does with new crates, and
    /// a registry in a folder.
    fn machine() -> Shell {
        let sh = shell();
        let room = sh.scratch().unwrap().to_owned();
        fs::create_dir(room.join("index.d")).unwrap();
        for name in ["cut", "cp", "sha256sum"] {
            std::os::unix::fs::symlink(format!("/usr/bin/{name}"), room.join("bin").join(name))
                .unwrap();
        }
        sh.export("ROOM", room.to_string_lossy());
        program(
            &sh,
            "cargo",
            r#"echo "cargo $*" >>"$ROOM/asked"; shift 2; n=0
            while [ $# -gt 0 ]; do
                n=$((n + 1)); [ $n -le 2 ] || exit 1
                printf '{"vers":"1.2.3","cksum":"%s"}\n' "$(sha256sum <"$CARGO_TARGET_DIR/package/$2-1.2.3.crate" | cut -d ' ' -f 1)" \
                    >>"$ROOM/index.d/$2"
                shift 2
            done"#,
        );
        program(
            &sh,
            "curl",
            r#"while [ $# -gt 1 ]; do [ "$1" != --output ] || out=$2; shift; done; : >"$out"
            [ -z "$AWAY" ] || exit 6
            cp "$ROOM/index.d/${1##*/}" "$out" 2>/dev/null && printf 200 || printf 404"#,
        );
        program(&sh, "git", r#"echo "git $*" >>"$ROOM/asked""#);
        sh
    }

    /// Uploads with this answer from the user; returns the questions to the user and the programs
    /// that were called.
    fn uploaded(sh: &Shell, answer: &str) -> (Done, String) {
        let release = made_up_release::of(sh, &["one-a", "one-b", "one-c"]);
        let log = sh.scratch().unwrap().join("asked");
        let _ = fs::remove_file(&log);
        let mut asked = String::new();
        let done = release.upload_asking(|question| {
            asked += question;
            Ok(answer.to_owned())
        });
        (done, asked + &fs::read_to_string(log).unwrap_or_default())
    }

    /// An upload that stops midway continues with what is missing, now or later, and never beside
    /// other content of the same version.
    #[test]
    fn an_upload_goes_on_with_what_is_missing() {
        let sh = machine();
        let index = sh.scratch().unwrap().join("index.d");
        assert_eq!(said(uploaded(&sh, "1.2.4").0), "nothing was uploaded");
        fs::write(index.join("one-b"), "{\"vers\":\"1.2.2\",\"cksum\":\"0\"}\n").unwrap();
        let (done, asked) = uploaded(&sh, "1.2.3");
        assert_eq!(done, Ok(()));
        for words in [
            "upload 3 of 3 crates of version 1.2.3",
            "cargo publish --locked --package one-a --package one-b --package one-c",
            "not uploaded yet: one-c.",
            "cargo publish --locked --package one-c\n",
            "git tag --annotate v1.2.3",
        ] {
            assert!(asked.contains(words), "{words}: {asked}");
        }
        // All of it is there: only the tag was missing.
        let (done, asked) = uploaded(&sh, "");
        assert!(done.is_ok() && asked.starts_with("git tag"), "{asked}");
        fs::remove_file(index.join("one-a")).unwrap();
        assert!(uploaded(&sh, "1.2.3").1.contains("upload 1 of 3 crates"));
        fs::write(index.join("one-c"), "{\"vers\":\"1.2.3\",\"cksum\":\"0\"}\n").unwrap();
        assert!(
            said(uploaded(&sh, "1.2.3").0)
                .contains("the index has one-c 1.2.3 already, and not this one")
        );
        sh.export("AWAY", "yes");
        assert!(said(uploaded(&sh, "1.2.3").0).contains("cannot be asked for one-a"));
    }
}
