//! `completions` and `man`: printed from the command line's own definition.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;

use super::CommandError;

/// Which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints completions.
///
/// # Errors
///
/// When standard output cannot be written.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), CommandError> {
    let mut page = Vec::new();
    clap_complete::generate(args.shell, &mut command, "locktopus-bench", &mut page);
    print(&page)
}

/// Prints one manual page for the program and each of its commands.
///
/// # Errors
///
/// When standard output cannot be written.
pub fn man(mut command: Command) -> Result<(), CommandError> {
    command.build();
    let mut page = Vec::new();
    render(&command, &mut page).map_err(failed)?;
    print(&page)
}

fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    clap_mangen::Man::new(command.clone()).render(page)?;
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        writeln!(page, ".SH \"{}\"", sub.get_name().to_uppercase())?;
        let manual = clap_mangen::Man::new(sub.clone());
        manual.render_description_section(page)?;
        manual.render_synopsis_section(page)?;
        manual.render_options_section(page)?;
    }
    Ok(())
}

fn print(page: &[u8]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(page).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error)),
        _ => Ok(()),
    }
}

fn failed(source: io::Error) -> CommandError {
    CommandError::Write {
        path: "standard output".into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cmd::cli::Cli;

    #[test]
    fn the_page_has_each_command_and_no_hidden_one() {
        let mut command = Cli::command();
        command.build();
        let mut page = Vec::new();
        render(&command, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".SH \"RUN\"") && page.contains(".SH \"FAILOVER-REPORT\""));
        assert!(!page.contains(".SH \"WORKER\""), "{page}");
    }
}
