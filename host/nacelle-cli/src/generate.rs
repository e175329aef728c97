// SPDX-License-Identifier: Apache-2.0
//! `nacelle completions` and `nacelle man`: what is made of the description of the command line.

use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::{EXIT_CODES, Failure};
use crate::output::print;

/// The variables of the environment that the command reads.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("NACELLE_WIRE", "the directory of the virtual wire, in place of --wire"),
    ("NACELLE_SIM_LIBRARY", "the library of the simulated RTL, in place of --library"),
    ("NO_COLOR", "if not empty, errors are printed without colours"),
];

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nacelle", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the page of the command itself, or writes this one and one for each subcommand.
pub(crate) fn man(dir: Option<&Path>) -> Result<(), Failure> {
    let page = page().map_err(|error| Failure::check(error.to_string()))?;
    let Some(dir) = dir else { return print(&page) };
    let write = || {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Cli::command(), dir)?;
        std::fs::write(dir.join("nacelle.1"), &page)
    };
    write().map_err(|error| {
        Failure::usage(format!("cannot write to {}: {error}", dir.display()), "name a directory that you may write to")
    })
}

/// The page of the command itself: that of its description, with exit codes and variables.
fn page() -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(Cli::command()).render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let exit_codes = EXIT_CODES.map(|(code, text)| (code.to_string(), text));
    page.push_str(&section("EXIT STATUS", exit_codes.iter().map(|(code, text)| (&code[..], *text))));
    page.push_str(&section("ENVIRONMENT", ENVIRONMENT.into_iter()));
    Ok(page)
}

/// A section of terms and what they mean.
fn section<'a>(head: &str, terms: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let plain = |text: &str| text.replace('`', "").replace('-', "\\-");
    let terms = terms.map(|(term, text)| format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), plain(text)));
    format!(".SH \"{head}\"\n{}", terms.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTED: &str = include_str!("../../../docs/how-to/command-line.md");

    #[test]
    fn the_manual_and_the_documentation_have_the_exit_codes() {
        let page = page().unwrap();
        for (code, text) in EXIT_CODES {
            assert!(DOCUMENTED.contains(&format!("| {code} | {text} |\n")), "{code}");
            assert!(page.contains(&format!(".TP\n\\fB{code}\\fR\n")), "{code}");
        }
        assert!(page.contains("no progress within \\-\\-timeout"), "{page}");
    }

    #[test]
    fn every_command_is_documented() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(DOCUMENTED.contains(&format!("nacelle {name}")), "{name}");
            assert!(command.get_about().is_some(), "{name}");
        }
    }
}
