//! Processors: how to build and run programs for each.

use std::path::{Path, PathBuf};

use super::Program;
use crate::cargo::Built;
use crate::failure::{Done, fail, missing};
use crate::packages::{self, ensure};
use crate::shell::{Cmd, Shell, say};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Platform {
    /// The name that Rust and GNU use.
    cpu: &'static str,
    /// The name that Debian and container engines use.
    pub(super) arch: &'static str,
    /// The name that readelf prints.
    machine: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform { cpu: "x86_64", arch: "amd64", machine: "X86-64" },
    Platform { cpu: "aarch64", arch: "arm64", machine: "AArch64" },
];

/// The platforms to build for, this machine's first.
pub(super) fn chosen(arguments: &[String]) -> Done<Vec<Platform>> {
    let mut chosen = PLATFORMS.to_vec();
    chosen.sort_by_key(|platform| !platform.is_here());
    match arguments {
        [] => {}
        [one] if one == "--here" => chosen.retain(|platform| platform.is_here()),
        [first, ..] => fail!("unknown option {first}; --help shows what there is"),
    }
    Ok(chosen)
}

impl Platform {
    pub(super) fn is_here(self) -> bool {
        self.cpu == std::env::consts::ARCH
    }

    pub(super) fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.cpu)
    }

    /// The name of a GNU tool for this processor.
    fn gnu(self, program: &str) -> String {
        format!("{}-linux-gnu-{program}", self.cpu)
    }

    /// Installs Rust's target and a C compiler, for `ring`. No other crate contains C.
    pub(super) fn prepare(self, sh: &Shell) -> Done {
        let triple = self.triple();
        let folder = sh.cmd("rustc").args(["--print", "target-libdir", "--target", &triple]);
        if !Path::new(&folder.read()?).exists() {
            if sh.var("LOCKTOPUS_NO_INSTALL").is_some() {
                missing!("LOCKTOPUS_NO_INSTALL is set; `rustup target add {triple}` installs it");
            }
            say(format!("installing Rust's target {triple}"));
            let (added, said) = sh.cmd("rustup").args(["target", "add", &triple]).told()?;
            if !added {
                missing!("rustup has no target {triple}: {}", crate::shell::tail(&said, 1));
            }
        }
        let compiler = self.compiler();
        let packages = if self.is_here() {
            vec!["musl-tools".to_owned()]
        } else {
            let gcc = format!("gcc-{}-linux-gnu", self.cpu.replace('_', "-"));
            vec![gcc, format!("libc6-dev-{}-cross", self.arch)]
        };
        let packages: Vec<_> = packages.iter().map(String::as_str).collect();
        let otherwise = format!("no {compiler} after installing it");
        ensure(sh, || sh.have(&compiler), &packages, &otherwise)
    }

    fn compiler(self) -> String {
        if self.is_here() { "musl-gcc".to_owned() } else { self.gnu("gcc") }
    }

    /// Builds a static program without symbols. Its source paths do not name this machine.
    pub(super) fn build(self, sh: &Shell, program: &Program) -> Done<PathBuf> {
        let triple = self.triple();
        let key = triple.replace('-', "_");
        let home = sh.var("CARGO_HOME").map_or_else(
            || PathBuf::from(sh.var("HOME").unwrap_or_default()).join(".cargo"),
            PathBuf::from,
        );
        let hidden = [(sh.root.as_path(), "locktopus"), (&sh.target(), "target"), (&home, "cargo")];
        let hidden =
            hidden.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
        let build = sh
            .cargo("build")
            .args(["--release", "--quiet", "--target", &triple])
            .args(["--package", program.package, "--bin", program.name])
            .env("CARGO_ENCODED_RUSTFLAGS", hidden.join("\u{1f}"))
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
            .env(&format!("CARGO_TARGET_{}_LINKER", key.to_uppercase()), "rust-lld")
            .env(&format!("CC_{key}"), self.compiler())
            // With this option, which some compilers set by default, code calls functions that
            // only glibc has.
            .env(&format!("CFLAGS_{key}"), "-U_FORTIFY_SOURCE");
        let build =
            if self.is_here() { build } else { build.env(&format!("AR_{key}"), self.gnu("ar")) };
        Built::by(build)?.program(program.name)
    }

    pub(super) fn check_static(self, sh: &Shell, file: &Path) -> Done {
        let read = sh.cmd("readelf").env("LC_ALL", "C").args(["--wide", "--dynamic"]);
        let read = read.args(["--file-header", "--program-headers", "--section-headers"]);
        if let Some(flaw) = self.flaw(&read.arg(file).read()?) {
            fail!("{} {flaw}", file.display());
        }
        Ok(())
    }

    /// Reads what readelf printed about a program, and says what is wrong with it.
    fn flaw(self, said: &str) -> Option<String> {
        let machine = said.lines().find(|line| line.trim_start().starts_with("Machine:"));
        if !machine.is_some_and(|line| line.contains(self.machine)) {
            return Some(format!("is not for {}", self.machine));
        }
        let unwanted = [
            (" INTERP ", "needs a dynamic loader"),
            ("(NEEDED)", "needs shared libraries"),
            (" .symtab ", "has symbols"),
            (" .debug_", "has debug information"),
        ];
        let found = unwanted.into_iter().find(|(sign, _)| said.contains(sign));
        found.map(|(_, flaw)| flaw.to_owned())
    }

    /// A command that runs the program, in an emulator if necessary.
    pub(super) fn cmd(self, sh: &Shell, program: &Path) -> Done<Cmd> {
        if self.is_here() {
            return Ok(sh.cmd(program));
        }
        let names = ["", "-static"].map(|end| format!("qemu-{}{end}", self.cpu));
        let find = || names.iter().find(|name| sh.have(name));
        if find().is_none() {
            packages::install(sh, &["qemu-user"])?;
        }
        match find() {
            Some(emulator) => Ok(sh.cmd(emulator).arg(program)),
            None => missing!("no {} after installing qemu-user", names[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{program, said, with};

    #[test]
    fn this_machine_comes_first() {
        let all = chosen(&[]).unwrap();
        assert!(all[0].is_here() && !all[1].is_here());
        assert_eq!(chosen(&["--here".into()]).unwrap(), all[..1]);
        assert!(said(chosen(&["--hare".into()])).contains("unknown option --hare"));
    }

    #[test]
    fn a_program_is_static_and_stripped() {
        let good =
            "  Machine:    Advanced Micro Devices X86-64\n  [ 1] .text  PROGBITS\n  LOAD 0x0";
        assert_eq!(PLATFORMS[0].flaw(good), None);
        assert_eq!(PLATFORMS[1].flaw(good).unwrap(), "is not for AArch64");
        for (line, flaw) in [
            ("  INTERP   0x0002a8", "needs a dynamic loader"),
            (" 0x1 (NEEDED)  Shared library: [libc.so]", "needs shared libraries"),
            ("  [38] .symtab  SYMTAB", "has symbols"),
            ("  [30] .debug_info  PROGBITS", "has debug information"),
        ] {
            assert_eq!(PLATFORMS[0].flaw(&format!("{good}\n{line}")).unwrap(), flaw);
        }
    }

    /// Only the other processor needs a cross compiler and an emulator.
    #[test]
    fn what_is_missing_is_installed_or_named() {
        let sh = with(&[("LOCKTOPUS_NO_INSTALL", "1")]);
        let (here, other) = (chosen(&[]).unwrap()[0], chosen(&[]).unwrap()[1]);
        program(&sh, "rustc", "echo /no/such/folder");
        let lacks = |done: Done| match done {
            Err(crate::failure::Failure::Missing(why)) => why,
            other => panic!("it ended with {other:?}"),
        };
        assert!(lacks(here.prepare(&sh)).contains("rustup target add"));
        program(&sh, "rustc", "echo /");
        assert_eq!(lacks(here.prepare(&sh)), "LOCKTOPUS_NO_INSTALL is set");
        program(&sh, "musl-gcc", "");
        assert_eq!(here.prepare(&sh), Ok(()));
        assert_eq!(lacks(other.prepare(&sh)), "LOCKTOPUS_NO_INSTALL is set");
        program(&sh, &other.gnu("gcc"), "");
        assert_eq!(other.prepare(&sh), Ok(()));
        let run = |platform: Platform| platform.cmd(&sh, Path::new("/x")).map(drop);
        assert_eq!(
            (run(here), lacks(run(other)).as_str()),
            (Ok(()), "LOCKTOPUS_NO_INSTALL is set")
        );
        program(&sh, &format!("qemu-{}-static", other.cpu), "");
        assert_eq!(run(other), Ok(()));
    }
}
