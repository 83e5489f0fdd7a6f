//! Completions and manual pages. The programs print them.

use std::fs;
use std::path::Path;

use super::platform::Platform;
use super::{Packaging, Program};
use crate::failure::{Done, fail};

/// A page: the command that prints it, and its path in the archive and in a Debian system.
#[derive(Debug)]
pub(super) struct Page {
    words: &'static [&'static str],
    pub(super) in_archive: String,
    pub(super) in_system: String,
}

pub(super) fn of(name: &str) -> [Page; 4] {
    let page = |words, in_archive: String, folder: &str| {
        let file = in_archive.rsplit('/').next().unwrap_or_default();
        // bash-completion looks for a file with the name of the program.
        let file = file.trim_end_matches(".bash");
        let in_system = format!("usr/share/{folder}/{file}");
        Page { words, in_archive, in_system }
    };
    [
        page(&["man"], format!("man/{name}.1"), "man/man1"),
        page(
            &["completions", "bash"],
            format!("completions/{name}.bash"),
            "bash-completion/completions",
        ),
        page(&["completions", "zsh"], format!("completions/_{name}"), "zsh/vendor-completions"),
        page(
            &["completions", "fish"],
            format!("completions/{name}.fish"),
            "fish/vendor_completions.d",
        ),
    ]
}

impl Packaging<'_> {
    /// Copies the pages into the folder. The program of the first platform prints them, for all.
    pub(super) fn pages(&self, platform: Platform, program: &Program, tree: &Path) -> Done {
        let kept = self.room.join("pages").join(program.name);
        for page in of(program.name) {
            let file = kept.join(&page.in_archive);
            if !file.exists() {
                let built = tree.join(program.name);
                let text = platform.cmd(self.sh, &built)?.args(page.words).read()?;
                if !text.contains(program.name) {
                    fail!("{} {} printed no page", program.name, page.words.join(" "));
                }
                fs::create_dir_all(file.parent().unwrap_or(&kept))?;
                fs::write(&file, text + "\n")?;
            }
            self.copy(file, &tree.join(&page.in_archive))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PROGRAMS, made_up_packaging, platform};
    use super::*;
    use crate::made_up::{program, said, shell};

    #[test]
    fn pages_have_the_names_that_shells_look_for() {
        let places = of("x").map(|page| page.in_system);
        let expected = [
            "usr/share/man/man1/x.1",
            "usr/share/bash-completion/completions/x",
            "usr/share/zsh/vendor-completions/_x",
            "usr/share/fish/vendor_completions.d/x.fish",
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_program_prints_its_pages_once() {
        let sh = shell();
        let packaging = made_up_packaging::of(&sh);
        let here = platform::chosen(&["--here".into()]).unwrap()[0];
        let tree = sh.scratch().unwrap().join("bin");
        program(&sh, "locktopus", "echo \"nothing\"");
        let write = || packaging.pages(here, &PROGRAMS[0], &tree);
        assert_eq!(said(write()), "locktopus man printed no page");
        program(&sh, "locktopus", "echo \"locktopus $*\"");
        write().unwrap();
        program(&sh, "locktopus", "exit 1");
        write().unwrap();
        let read = |file: &str| fs::read_to_string(tree.join(file)).unwrap();
        assert_eq!(read("completions/_locktopus"), "locktopus completions zsh\n");
        assert_eq!(read("man/locktopus.1"), "locktopus man\n");
    }
}
