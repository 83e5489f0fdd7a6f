//! `completions` and `man`: made from the command line itself, so that they cannot be out of date.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Exit;

/// Which shell.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that they are for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> u8 {
    let mut page = Vec::new();
    clap_complete::generate(args.shell, &mut command, "locktopus", &mut page);
    print(&page)
}

/// One page for all: the command, and each of its commands behind it.
pub(crate) fn man(mut command: Command) -> u8 {
    command.build();
    let mut page = Vec::new();
    let rendered = (|| -> io::Result<()> {
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        sections(&command, "LOCKTOPUS", &mut page)?;
        Ok(())
    })();
    match rendered {
        Ok(()) => print(&page),
        Err(_) => Exit::Failed.code(),
    }
}

/// What is said of each command, and of the commands of that.
fn sections(command: &Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        let name = format!("{name} {}", sub.get_name().to_uppercase());
        writeln!(page, ".SH \"{name}\"")?;
        let manual = clap_mangen::Man::new(sub.clone());
        manual.render_description_section(page)?;
        manual.render_synopsis_section(page)?;
        manual.render_options_section(page)?;
        sections(sub, &name, page)?;
    }
    Ok(())
}

fn print(page: &[u8]) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(page).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed.code(),
        _ => Exit::Ok.code(),
    }
}
