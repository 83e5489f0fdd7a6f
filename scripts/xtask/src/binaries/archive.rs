//! The folder of files for each program, and its archive.

use std::fs;
use std::path::{Path, PathBuf};

use super::platform::Platform;
use super::{Packaging, Program, licences};
use crate::failure::{Done, fail};

/// Path in the archive: licences of the linked crates.
pub(super) const THIRD_PARTY: &str = "licences/third-party.txt";
/// Path in the archive: licences of Rust's standard library, from the toolchain.
pub(super) const RUST_LIBRARY: &str = "licences/rust-library.html";

impl Packaging<'_> {
    /// Collects the files of a program in one folder.
    pub(super) fn tree(
        &self,
        platform: Platform,
        program: &Program,
        built: &Path,
    ) -> Done<PathBuf> {
        let tree = self.room.join(self.named(program, platform));
        self.copy(built, &tree.join(program.name))?;
        self.copy(Path::new(program.folder).join("README.md"), &tree.join("README.md"))?;
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            self.copy(licence, &tree.join(licence))?;
        }
        self.pages(platform, program, &tree)?;
        let sysroot = self.sh.cmd("rustc").args(["--print", "sysroot"]).read()?;
        let library = Path::new(&sysroot).join("share/doc/rust/COPYRIGHT-library.html");
        self.copy(library, &tree.join(RUST_LIBRARY))?;
        fs::write(tree.join(THIRD_PARTY), licences::third_party(self.sh, platform, program)?)?;
        Ok(tree)
    }

    /// Packs the folder. The same files always give the same bytes.
    pub(super) fn archive(&self, tree: &Path) -> Done<PathBuf> {
        let name = tree.file_name().unwrap_or_default();
        let archive = self.out.join(format!("{}.tar", name.to_string_lossy()));
        let tar = self.sh.cmd("tar").args(["--create", "--sort=name", "--format=gnu"]);
        let tar = tar.args(["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
        let tar = tar.arg(format!("--mtime=@{}", self.time)).arg("--file").arg(&archive);
        tar.arg("--directory").arg(&self.room).arg(name).run()?;
        self.compress(&archive)
    }

    pub(super) fn compress(&self, file: &Path) -> Done<PathBuf> {
        self.sh.cmd("gzip").args(["--best", "--no-name", "--force"]).arg(file).run()?;
        Ok(PathBuf::from(format!("{}.gz", file.display())))
    }

    /// Unpacks the archive and runs its program.
    pub(super) fn try_archive(
        &self,
        platform: Platform,
        program: &Program,
        archive: &Path,
    ) -> Done {
        let tree = self.room.join("unpacked");
        fs::create_dir_all(&tree)?;
        self.sh.cmd("tar").arg("-xzf").arg(archive).arg("-C").arg(&tree).run()?;
        let file = tree.join(self.named(program, platform)).join(program.name);
        self.check_version(platform, program, &file)
    }

    pub(super) fn check_version(&self, platform: Platform, program: &Program, file: &Path) -> Done {
        let said = platform.cmd(self.sh, file)?.arg("--version").read()?;
        let expected = format!("{} {}", program.name, self.version);
        if said != expected {
            fail!("{} says '{said}' and not '{expected}'", file.display());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::{PROGRAMS, made_up_packaging, platform};
    use super::*;
    use crate::made_up::{on_the_real_path, program, said};

    #[test]
    fn an_archive_is_the_same_each_time_and_its_program_runs() {
        let sh = on_the_real_path();
        let packaging = made_up_packaging::of(&sh);
        let here = platform::chosen(&["--here".into()]).unwrap()[0];
        let tree = packaging.room.join(packaging.named(&PROGRAMS[0], here));
        fs::create_dir(&tree).unwrap();
        let made = |script: &str, age: u64| {
            let file = tree.join("locktopus");
            fs::copy(program(&sh, "made", script), &file).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(age);
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            let archive = packaging.archive(&tree).unwrap();
            (fs::read(&archive).unwrap(), packaging.try_archive(here, &PROGRAMS[0], &archive))
        };
        let (first, ran) = made("echo locktopus 1.2.3-rc.1", 1);
        assert_eq!(ran, Ok(()));
        let (second, _) = made("echo locktopus 1.2.3-rc.1", 2);
        assert!(first == second, "the time or the owner of a file is in it");
        assert!(said(made("echo locktopus 1.2.2", 3).1).contains("and not 'locktopus 1.2.3-rc.1'"));
    }
}
