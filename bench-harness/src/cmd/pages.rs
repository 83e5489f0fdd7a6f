//! `completions` and `man`: printed from the command line's own definition.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

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
    let manual = Man::new(command.clone());
    manual.render_title(page)?;
    manual.render_name_section(page)?;
    synopsis(command, page)?;
    manual.render_description_section(page)?;
    manual.render_options_section(page)?;
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        writeln!(page, ".SH \"{}\"", sub.get_name().to_uppercase())?;
        let manual = Man::new(sub.clone());
        synopsis(sub, page)?;
        manual.render_description_section(page)?;
        manual.render_options_section(page)?;
    }
    Ok(())
}

/// The usage of `--help`. The generator's own synopsis leaves out the values of options.
fn synopsis(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let mut synopsis = Roff::new();
    let text = synopsis.control("SH", ["SYNOPSIS"]);
    text.text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(page)
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
        assert!(
            !page.contains(".SH \"WORKER\"") && !page.contains("(1)"),
            "{page}"
        );
    }
}
