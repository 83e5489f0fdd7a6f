//! `completions` and `man`: generated from the command line, so they are always up to date.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

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
        let manual = Man::new(command.clone());
        manual.render_title(&mut page)?;
        manual.render_name_section(&mut page)?;
        parts(&command, &mut page)?;
        list(&command).to_writer(&mut page)?;
        sections(&command, "LOCKTOPUS", &mut page)
    })();
    match rendered {
        Ok(()) => print(&page),
        Err(_) => Exit::Failed.code(),
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let subs = command.get_subcommands();
    subs.filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// The commands in a line each. The generator would refer to a page of each, and there is only one.
fn list(command: &Command) -> Roff {
    let mut list = Roff::new();
    list.control("SH", ["COMMANDS"]);
    for sub in shown(command) {
        let about = sub.get_about().map(ToString::to_string);
        let about = roman(about.unwrap_or_default());
        list.control("TP", []).text([bold(sub.get_name())]);
        list.text([about]);
    }
    list
}

/// Writes the parts that each command has.
fn parts(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let manual = Man::new(command.clone());
    let usage = command.clone().render_usage().to_string();
    let mut synopsis = Roff::new();
    let text = synopsis.control("SH", ["SYNOPSIS"]);
    text.text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(page)?;
    manual.render_description_section(page)?;
    manual.render_options_section(page)?;
    let more = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    let more = more.map(ToString::to_string).unwrap_or_default();
    if let Some((heading, text)) = more.split_once(":\n") {
        let mut more = Roff::new();
        more.control("SH", [&*heading.to_uppercase()]);
        for line in text.lines().map(str::trim) {
            match line.split_once("  ") {
                Some((term, text)) => more
                    .control("TP", [])
                    .text([bold(term)])
                    .text([roman(text.trim())]),
                None => more.control("PP", []).text([roman(line)]),
            };
        }
        more.to_writer(page)?;
    }
    Ok(())
}

/// Writes a section for each subcommand, recursively. The global options are at the top of
/// the page only.
fn sections(command: &Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    for sub in shown(command) {
        let name = format!("{name} {}", sub.get_name().to_uppercase());
        writeln!(page, ".SH \"{name}\"")?;
        let own = sub.clone().mut_args(|arg| {
            let hidden = arg.is_hide_set() || arg.is_global_set();
            arg.hide(hidden)
        });
        let mut text = Vec::new();
        parts(&own, &mut text)?;
        let text = String::from_utf8_lossy(&text).replace("\n.SH ", "\n.SS ");
        page.extend_from_slice(text.as_bytes());
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
