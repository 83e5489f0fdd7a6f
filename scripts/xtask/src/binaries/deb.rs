//! Debian packages, made by `dpkg-deb`. Every Debian has it, and it packs for any processor. A
//! static program has no dependencies, so no other tool is needed to find them.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::{RUST_LIBRARY, THIRD_PARTY};
use super::platform::Platform;
use super::{PROGRAMS, Packaging, Program, pages};
use crate::failure::{Done, fail, missing};
use crate::files;
use crate::shell::Cmd;

impl Packaging<'_> {
    fn deb_file(&self, platform: Platform, program: &Program) -> PathBuf {
        let (name, version) = (program.name, self.debian_version());
        self.out.join(format!("{name}_{version}_{}.deb", platform.arch))
    }

    /// Debian sorts `1.0~rc.1` before `1.0`.
    fn debian_version(&self) -> String {
        self.version.replace('-', "~")
    }

    /// Makes the package from the files of the archive.
    pub(super) fn deb(&self, platform: Platform, program: &Program, tree: &Path) -> Done {
        if !self.sh.have("dpkg-deb") {
            missing!("this system has no dpkg-deb");
        }
        let root = self.room.join(format!("{}-{}-deb", program.name, platform.arch));
        let docs = root.join("usr/share/doc").join(program.name);
        self.copy(tree.join(program.name), &root.join("usr/bin").join(program.name))?;
        for page in pages::of(program.name) {
            self.copy(tree.join(page.in_archive), &root.join(page.in_system))?;
        }
        self.copy(tree.join("README.md"), &docs.join("README.md"))?;
        self.copy(tree.join(THIRD_PARTY), &docs.join("third-party.txt"))?;
        self.copy(tree.join(RUST_LIBRARY), &docs.join("rust-library.html"))?;
        self.copy("CHANGELOG.md", &docs.join("changelog"))?;
        for name in ["third-party.txt", "rust-library.html", "changelog"] {
            self.compress(&docs.join(name))?;
        }
        self.compress(&root.join(format!("usr/share/man/man1/{}.1", program.name)))?;
        fs::write(
            docs.join("copyright"),
            copyright(&fs::read_to_string(tree.join("LICENSE-MIT"))?),
        )?;
        let control = root.join("DEBIAN/control");
        fs::create_dir_all(root.join("DEBIAN"))?;
        fs::write(control, self.control(platform, program, &root)?)?;
        fs::write(root.join("DEBIAN/md5sums"), self.sums(&root)?)?;
        self.sh.cmd("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root).run()?;
        let pack = self.sh.cmd("dpkg-deb").env("SOURCE_DATE_EPOCH", &self.time);
        let pack = pack.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root);
        let (packed, said) = pack.arg(self.deb_file(platform, program)).told()?;
        if !packed {
            fail!("{said}");
        }
        Ok(())
    }

    fn control(&self, platform: Platform, program: &Program, root: &Path) -> Done<String> {
        let mut bytes = 0;
        for file in files::below(&root.join("usr"), "")? {
            bytes += fs::metadata(file)?.len();
        }
        let other = PROGRAMS.iter().find(|one| one.name != program.name).map_or("", |one| one.name);
        Ok(format!(
            "Package: {}\nVersion: {}\nArchitecture: {}\nMaintainer: Locktopus maintainers \
             <locktopus@users.noreply.github.com>\nInstalled-Size: {}\nRecommends: ca-certificates\n\
             Suggests: {other}\nSection: utils\nPriority: optional\nHomepage: \
             https://github.com/locktopus/locktopus\nDescription: {}\n Part of Locktopus, distributed \
             locks on Redis and Valkey. The program is\n statically linked.\n",
            program.name,
            self.debian_version(),
            platform.arch,
            bytes.div_ceil(1024),
            program.about
        ))
    }

    fn sums(&self, root: &Path) -> Done<String> {
        let files = files::below(&root.join("usr"), "")?;
        let files = files.iter().filter_map(|file| file.strip_prefix(root).ok());
        Ok(self.sh.cmd("md5sum").args(files).dir(root).read()? + "\n")
    }

    /// Installs the package into a folder, checks it there, and removes it.
    pub(super) fn try_deb(&self, platform: Platform, program: &Program) -> Done {
        if !self.sh.can_be_root() {
            missing!("installing takes root, or a sudo that asks for no password");
        }
        let system = self.room.join(format!("{}-system", program.name));
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(system.join("var/lib/dpkg").join(folder))?;
        }
        fs::write(system.join("var/lib/dpkg/status"), "")?;
        let tried = self.try_in(&system, platform, program);
        self.sh.as_root("rm").arg("-rf").arg(&system).run()?;
        tried
    }

    fn try_in(&self, system: &Path, platform: Platform, program: &Program) -> Done {
        let works = |command: Cmd| match command.told()? {
            (true, _) => Ok(()),
            (false, said) => fail!("{said}"),
        };
        let dpkg = || {
            let dpkg = self.sh.as_root("dpkg").arg("--force-bad-path");
            dpkg.arg(format!("--root={}", system.display()))
        };
        works(dpkg().arg("--install").arg(self.deb_file(platform, program)))?;
        self.check_version(platform, program, &system.join("usr/bin").join(program.name))?;
        let completions = format!("usr/share/bash-completion/completions/{}", program.name);
        let bash = self.sh.cmd("bash").args(["-c", "source \"$0\" && complete -p \"$1\""]);
        works(bash.arg(system.join(completions)).arg(program.name))?;
        works(dpkg().args(["--purge", program.name]))?;
        let left = files::below(system, "")?.into_iter();
        match left.into_iter().find(|file| file.starts_with(system.join("usr"))) {
            Some(file) => fail!("removing {} leaves {}", program.name, file.display()),
            None => Ok(()),
        }
    }
}

fn copyright(mit: &str) -> String {
    format!(
        "Locktopus, https://github.com/locktopus/locktopus\n\nLicensed under MIT or Apache-2.0, as you choose. \
         The text of Apache-2.0 is in\n/usr/share/common-licenses/Apache-2.0. Licences of linked crates are in \
         third-party.txt.gz,\nand those of Rust's library in rust-library.html.gz.\n\n{mit}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{made_up_packaging, platform};
    use super::*;
    use crate::made_up::{on_the_real_path, program, said};

    /// Makes and tries a package with this script as its program.
    fn tried(script: &str, bash: &str) -> Option<Done> {
        let sh = on_the_real_path();
        if !sh.have("dpkg-deb") || !sh.can_be_root() {
            return None;
        }
        let (packaging, ours) = (made_up_packaging::of(&sh), &PROGRAMS[0]);
        let here = platform::chosen(&["--here".into()]).unwrap()[0];
        let tree = packaging.room.join("tree");
        for file in ["README.md", "LICENSE-MIT", THIRD_PARTY, RUST_LIBRARY] {
            packaging.copy("LICENSE-MIT", &tree.join(file)).unwrap();
        }
        packaging.copy(program(&sh, "made", script), &tree.join(ours.name)).unwrap();
        for page in pages::of(ours.name) {
            packaging.copy("README.md", &tree.join(&page.in_archive)).unwrap();
        }
        fs::write(tree.join("completions/locktopus.bash"), bash).unwrap();
        packaging.deb(here, ours, &tree).unwrap();
        assert!(packaging.out.join(format!("locktopus_1.2.3~rc.1_{}.deb", here.arch)).exists());
        Some(packaging.try_deb(here, ours))
    }

    #[test]
    fn a_package_is_installed_tried_and_removed() {
        let (version, completes) = ("echo locktopus 1.2.3-rc.1", "complete -W run locktopus");
        let Some(good) = tried(version, completes) else { return };
        assert_eq!(good, Ok(()));
        assert!(said(tried("echo locktopus 1", completes).unwrap()).contains("says 'locktopus 1'"));
        assert!(said(tried(version, "true").unwrap()).contains("no completion specification"));
    }
}
