//! `completions` and `man`: generated from the command line, so they are always up to date.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Exit;

/// Print completions for a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> u8 {
    let mut page = Vec::new();
    clap_complete::generate(args.shell, &mut command, "locktopus", &mut page);
    print(&page)
}

/// Prints one page, with a section for each command.
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

/// Writes a section for each subcommand, recursively.
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
