// SPDX-License-Identifier: Apache-2.0
//! The page of errors has these texts, and codes are found as people write them.

use std::collections::HashSet;

use super::*;

const PAGE: &str = include_str!("../../../../docs/reference/errors.md");

/// The table of a kind, as the page has it.
fn table(kind: Kind) -> String {
    let exit = if kind == Kind::Error { " exit code |" } else { "" };
    let rule = if kind == Kind::Error { " --- |" } else { "" };
    let mut text =
        format!("| code | name |{exit} what it means | cause | what to do |\n| --- | --- |{rule} --- | --- | --- |\n");
    for one in all().iter().filter(|one| one.kind == kind) {
        let exit = one.exit_code().map_or(String::new(), |code| format!(" {code} |"));
        let Text { meaning, cause, advice } = one.text;
        text.push_str(&format!("| {} | `{}` |{exit} {meaning} | {cause} | {advice} |\n", one.codes(), one.name));
    }
    text
}

/// With NACELLE_PRINT_TABLES set, prints the tables for the page.
#[test]
fn the_page_of_errors_has_these_texts() {
    for kind in Kind::ALL {
        let table = table(kind);
        if std::env::var_os("NACELLE_PRINT_TABLES").is_some() {
            println!("{}\n\n{table}", kind.title());
        } else {
            assert!(PAGE.contains(&format!("\n{table}\n")), "docs/reference/errors.md differs from\n{table}");
        }
    }
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains('`')).count();
    assert_eq!(rows, all().len(), "the page has no other rows");
}

#[test]
fn codes_are_in_order_and_names_differ_within_a_kind() {
    for kind in Kind::ALL {
        let all: Vec<_> = all().into_iter().filter(|one| one.kind == kind).collect();
        assert!(all.is_sorted_by(|a, b| a.last < b.code), "{kind:?}");
        assert_eq!(all.iter().map(|one| &one.name).collect::<HashSet<_>>().len(), all.len(), "{kind:?}");
    }
    assert!(
        ErrorCode::ALL.iter().map(|code| code.number()).eq(1..=ErrorCode::ALL.len() as u32),
        "numbers are not reused"
    );
}

#[test]
fn codes_are_found_by_number_name_and_words() {
    let found =
        |kind, meant: &str| -> Vec<(Kind, u32)> { find(kind, meant).iter().map(|one| (one.kind, one.code)).collect() };
    assert_eq!(
        found(None, "8"),
        [(Kind::Error, 8), (Kind::Result, 6), (Kind::Reject, 8), (Kind::Syndrome, 0), (Kind::Status, 8)]
    );
    assert_eq!(found(Some(Kind::Syndrome), "0x2c"), [(Kind::Syndrome, 0x20)]);
    for name in ["RETRY_EXC_ERR", "IBV_WC_RETRY_EXC_ERR", "retry-exc-err"] {
        assert_eq!(found(None, name), [(Kind::Status, 12)], "{name}");
    }
    assert_eq!(found(None, "kernel-timeout"), [(Kind::Error, 13), (Kind::Result, 2)]);
    assert_eq!(found(None, "retry count exceeded"), [(Kind::Status, 12), (Kind::Status, 13)]);
    assert_eq!(found(Some(Kind::Reject), "invalid service id"), [(Kind::Reject, 8)]);
    for nothing in ["4711", "no such words", "", "-"] {
        assert_eq!(found(None, nothing), [], "{nothing}");
    }
}
