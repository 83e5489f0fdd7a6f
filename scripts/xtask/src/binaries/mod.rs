//! Packages for machines without Rust: `scripts/package`.

mod archive;
mod deb;
mod image;
mod licences;
mod pages;
mod platform;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Done, fail, why_missing};
use crate::release::contents;
use crate::shell::{Shell, say};
use crate::{cargo, tools};
use platform::Platform;

pub(crate) const HELP: &str = "\
Makes packages for machines without Rust, tries them, and then lists what it made and what it skipped.

Usage: scripts/package [--here]

  (nothing)   for x86-64 and arm64; cross-builds the one that this machine is not
  --here      only for this machine's processor

It writes these files to target/packages, for each processor:
  NAME-VERSION-TARGET.tar.gz        a static program (musl) with licences, README, completions and manual page
  NAME_VERSION_ARCH.deb             the same as a Debian package
  NAME-VERSION-TARGET.cdx.json      an SBOM (CycloneDX): the crates in it
  locktopus-VERSION-image-ARCH.tar.gz   an image of docker/Dockerfile, for `docker load`
and SHA256SUMS. NAME is locktopus or locktopus-bench.

It runs each program, that of the other processor in an emulator. It installs this machine's .deb into a folder and
removes it again. It runs this machine's image against a Redis server, which it starts and stops.

It installs the tools that it needs, if permitted: Rust's musl targets, musl-tools, a cross compiler, qemu-user,
ca-certificates, a container engine, a Redis server and cargo-cyclonedx. If it cannot install one, it skips what needs
that tool and tells you why. With LOCKTOPUS_REQUIRE_ALL, as in the nightly run, a skip is a failure.

LOCKTOPUS_SKIP_POD=REASON   make no image, even with LOCKTOPUS_REQUIRE_ALL
LOCKTOPUS_NO_INSTALL=1      install nothing";

/// A program to package.
#[derive(Debug)]
struct Program {
    name: &'static str,
    package: &'static str,
    folder: &'static str,
    about: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "locktopus",
        package: "locktopus-cli",
        folder: "crates/locktopus-cli",
        about: "run programs under distributed locks, and look at locks",
    },
    Program {
        name: "locktopus-bench",
        package: "bench-harness",
        folder: "bench-harness",
        about: "measure distributed locks on Redis and Valkey",
    },
];

/// A run of `scripts/package`.
#[derive(Debug)]
struct Packaging<'a> {
    sh: &'a Shell,
    version: String,
    /// Time of the commit in Unix seconds. Archives use it for every file, to be reproducible.
    time: String,
    /// A temporary folder for files in the making.
    room: PathBuf,
    out: PathBuf,
    skipped: Vec<String>,
}

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let platforms = platform::chosen(arguments)?;
    tools::git(sh)?;
    let packages = cargo::published(sh)?;
    let version = packages.iter().find(|one| cargo::name(one) == PROGRAMS[0].package);
    let version = version.and_then(|one| one["version"].as_str()).unwrap_or_default().to_owned();
    let out = sh.target().join("packages");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out)?;
    let mut packaging = Packaging {
        sh,
        version,
        time: sh.cmd("git").args(["log", "-1", "--format=%ct"]).read()?,
        room: sh.scratch()?.to_owned(),
        out,
        skipped: Vec::new(),
    };
    for platform in platforms {
        let what = format!("everything for {}", platform.arch);
        if packaging.could(&what, platform.prepare(sh))? {
            packaging.make(platform)?;
        }
    }
    packaging.tell()
}

impl Packaging<'_> {
    /// Whether it was done. Records a skip if something is missing; at night that is a failure.
    fn could(&mut self, what: &str, done: Done) -> Done<bool> {
        let Some(why) = why_missing(done)? else {
            return Ok(true);
        };
        if self.sh.all_required() {
            fail!("{what} cannot be skipped, as LOCKTOPUS_REQUIRE_ALL is set: {why}");
        }
        self.sh.warn(format!("SKIPPED: {what}: {why}"));
        self.skipped.push(format!("{what}: {why}"));
        Ok(false)
    }

    fn make(&mut self, platform: Platform) -> Done {
        let arch = platform.arch;
        for program in &PROGRAMS {
            say(format!("building {} for {arch}", program.name));
            let built = platform.build(self.sh, program)?;
            platform.check_static(self.sh, &built)?;
            let tree = self.tree(platform, program, &built)?;
            let archive = self.archive(&tree)?;
            let tried = self.try_archive(platform, program, &archive);
            self.could(&format!("running {} for {arch}", program.name), tried)?;
            let (deb, what) =
                (self.deb(platform, program, &tree), format!("the .deb of {}", program.name));
            if self.could(&format!("{what} for {arch}"), deb)? && platform.is_here() {
                let tried = self.try_deb(platform, program);
                self.could(&format!("installing {what}"), tried)?;
            }
        }
        let listed = self.list_contents(platform);
        self.could(&format!("the SBOMs for {arch}"), listed)?;
        match self.sh.var("LOCKTOPUS_SKIP_POD") {
            // The user chose this, so it is no failure.
            Some(why) => self.skipped.push(format!("the image for {arch}: {why}")),
            None => {
                let image = self.image(platform);
                if self.could(&format!("the image for {arch}"), image)? && platform.is_here() {
                    let tried = self.try_image(platform);
                    self.could(&format!("running the image for {arch}"), tried)?;
                }
            }
        }
        Ok(())
    }

    fn list_contents(&self, platform: Platform) -> Done {
        let triple = platform.triple();
        let folders = PROGRAMS.each_ref().map(|program| program.folder);
        let lists = contents::lists(self.sh, &["--target", &triple], &folders)?;
        for (program, list) in PROGRAMS.iter().zip(lists) {
            fs::write(self.out.join(self.named(program, platform) + ".cdx.json"), list)?;
        }
        Ok(())
    }

    /// The stem of the program's file names.
    fn named(&self, program: &Program, platform: Platform) -> String {
        format!("{}-{}-{}", program.name, self.version, platform.triple())
    }

    /// Writes the checksums and lists the files.
    fn tell(&self) -> Done {
        let mut names: Vec<_> = fs::read_dir(&self.out)?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        say(format!("\nIn {}:", self.out.display()));
        for name in &names {
            let kib = fs::metadata(self.out.join(name))?.len().div_ceil(1024);
            say(format!("{kib:7} KiB  {name}"));
        }
        self.skipped.iter().for_each(|what| say(format!("    SKIPPED  {what}")));
        if names.is_empty() {
            fail!("nothing was made");
        }
        let sums = self.sh.cmd("sha256sum").args(&names).dir(&self.out).read()?;
        fs::write(self.out.join("SHA256SUMS"), sums + "\n")?;
        // docker writes files that only their owner can read.
        self.sh.cmd("chmod").args(["-R", "u=rwX,go=rX"]).arg(&self.out).run()
    }

    fn copy(&self, from: impl AsRef<Path>, to: &Path) -> Done {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(self.sh.root.join(from), to)?;
        Ok(())
    }
}

#[cfg(test)]
mod made_up_packaging {
    use super::*;

    pub(super) fn of(sh: &Shell) -> Packaging<'_> {
        let room = sh.scratch().unwrap().join("room");
        let out = room.join("out");
        fs::create_dir_all(&out).unwrap();
        let (version, time) = ("1.2.3-rc.1".to_owned(), "1000000000".to_owned());
        Packaging { sh, version, time, room, out, skipped: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::missing;
    use crate::made_up::{on_the_real_path, said, shell, with};

    #[test]
    fn a_skip_is_a_failure_only_where_everything_is_required() {
        let sh = shell();
        let mut packaging = made_up_packaging::of(&sh);
        let lacks = || -> Done { missing!("no docker") };
        assert_eq!(packaging.could("the image", lacks()), Ok(false));
        assert_eq!(packaging.skipped, ["the image: no docker"]);
        assert_eq!(packaging.could("it", Ok(())), Ok(true));
        assert_eq!(said(packaging.could("it", Err("it broke".into()))), "it broke");
        let sh = with(&[("LOCKTOPUS_REQUIRE_ALL", "1")]);
        let mut packaging = made_up_packaging::of(&sh);
        assert!(said(packaging.could("the image", lacks())).contains("cannot be skipped"));
    }

    #[test]
    fn there_is_a_sum_of_each_file() {
        let sh = on_the_real_path();
        let packaging = made_up_packaging::of(&sh);
        assert_eq!(said(packaging.tell()), "nothing was made");
        fs::write(packaging.out.join("b.deb"), "").unwrap();
        packaging.tell().unwrap();
        let sums = fs::read_to_string(packaging.out.join("SHA256SUMS")).unwrap();
        assert!(
            sums.starts_with("e3b0c44298fc1c149afbf4c8996fb924") && sums.ends_with("  b.deb\n")
        );
    }
}
