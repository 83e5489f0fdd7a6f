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
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            if sub.get_name() == "help" {
                continue;
            }
            writeln!(page, ".SH \"LOCKTOPUS {}\"", sub.get_name().to_uppercase())?;
            let sub = clap_mangen::Man::new(sub.clone());
            sub.render_description_section(&mut page)?;
            sub.render_synopsis_section(&mut page)?;
            sub.render_options_section(&mut page)?;
        }
        Ok(())
    })();
    match rendered {
        Ok(()) => print(&page),
        Err(_) => Exit::Failed.code(),
    }
}

fn print(page: &[u8]) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(page).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed.code(),
        _ => Exit::Ok.code(),
    }
}
