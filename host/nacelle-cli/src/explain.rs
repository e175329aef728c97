// SPDX-License-Identifier: Apache-2.0
//! `nacelle explain`: what a code means, why it happens, and what to do.

use nacelle::explain::{Explanation, Kind, all, find};

use crate::args::{Cli, ExplainArgs};
use crate::failure::Failure;
use crate::output::{print, print_json, table};

pub(crate) fn explain(cli: &Cli, args: &ExplainArgs) -> Result<(), Failure> {
    let kind = args.code.first().and_then(|word| Kind::ALL.into_iter().find(|kind| name(*kind) == *word));
    let words = if kind.is_some() { &args.code[1..] } else { &args.code[..] };
    let meant = words.join(" ");
    let found = if words.is_empty() { all() } else { find(kind, &meant) };
    let found: Vec<_> = found.into_iter().filter(|one| kind.is_none_or(|kind| kind == one.kind)).collect();
    if found.is_empty() {
        let what = kind.map_or("code", Kind::title);
        return Err(Failure::usage(format!("there is no {what} {meant:?}"), "list all codes with 'nacelle explain'"));
    }
    if cli.json {
        return print_json(&found);
    }
    if words.is_empty() {
        return print(&overview(&found));
    }
    let texts: Vec<_> = found.iter().map(text).collect();
    print(&texts.join("\n"))
}

/// The word that stands for a kind on the command line.
fn name(kind: Kind) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn overview(all: &[Explanation]) -> String {
    let mut rows = vec![["KIND", "CODE", "NAME", "MEANING"].map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|one| vec![name(one.kind), one.codes(), one.name.clone(), one.text.meaning.into()]));
    table(&rows, 4)
}

fn text(one: &Explanation) -> String {
    let exit = one.exit_code().map_or(String::new(), |code| format!(", exit code {code}"));
    format!(
        "{} {}: {} ({}{exit})\n  means  {}\n  cause  {}\n  do     {}\n",
        name(one.kind),
        one.codes(),
        one.name,
        one.kind.title(),
        one.text.meaning,
        one.text.cause,
        one.text.advice
    )
}
