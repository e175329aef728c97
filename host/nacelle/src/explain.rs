// SPDX-License-Identifier: Apache-2.0
//! What each code means that a call or connection can end with, why it happens, and what to do.
//!
//! These are the texts of [`Error::hint`](crate::Error::hint), of `nacelle explain` and of docs/reference/errors.md, whose tables a
//! test compares with them.

mod errors;
pub mod links;
pub(crate) mod rejects;
mod transport;

use serde::Serialize;

use crate::ErrorCode;

/// A kind of code. The same number has another meaning in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Of the client library: [`ErrorCode`].
    Error,
    /// With which a call ends in the device.
    Result,
    /// With which a device refuses regions (MRSP ERR).
    Regions,
    /// The reason of a REJ (IBTA 12.6.7.2).
    Reject,
    /// The syndrome of an AETH (IBTA 9.7.5.2).
    Syndrome,
    /// The status of a completion (`ibv_wc_status`).
    Status,
}

impl Kind {
    /// All kinds, in the order in which they are explained.
    pub const ALL: [Self; 6] = [Self::Error, Self::Result, Self::Regions, Self::Reject, Self::Syndrome, Self::Status];

    /// The kind in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Error => "error of the client library",
            Self::Result => "result code of a call",
            Self::Regions => "refusal of regions (MRSP ERR)",
            Self::Reject => "reject reason (CM REJ)",
            Self::Syndrome => "syndrome of an acknowledgement (AETH)",
            Self::Status => "status of a completion",
        }
    }
}

/// What a code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Text {
    /// What has happened.
    pub meaning: &'static str,
    /// Why it happens.
    pub cause: &'static str,
    /// What to do, in one line.
    pub advice: &'static str,
}

/// A code, or several in a row that mean the same, with what they say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The kind of code.
    pub kind: Kind,
    /// The first code.
    pub code: u32,
    /// The last code; that of the first if there is one.
    pub last: u32,
    /// The name by which programs know it.
    pub name: String,
    /// What it says.
    #[serde(flatten)]
    pub text: Text,
}

impl Explanation {
    fn new(kind: Kind, codes: std::ops::RangeInclusive<u32>, name: impl Into<String>, text: Text) -> Self {
        Self { kind, code: *codes.start(), last: *codes.end(), name: name.into(), text }
    }

    /// The code or codes as that kind is written: syndromes and results in hexadecimal digits.
    #[must_use]
    pub fn codes(&self) -> String {
        let code = |code: u32| match self.kind {
            Kind::Result | Kind::Syndrome => format!("{code:#04x}"),
            _ => code.to_string(),
        };
        if self.code == self.last { code(self.code) } else { format!("{} to {}", code(self.code), code(self.last)) }
    }

    /// The exit code of a program that ends because of it, if it is an error.
    #[must_use]
    pub fn exit_code(&self) -> Option<u8> {
        let of = |code: &ErrorCode| self.kind == Kind::Error && code.number() == self.code;
        ErrorCode::ALL.iter().copied().find(of).map(ErrorCode::exit_code)
    }
}

/// All codes, by kind and number.
#[must_use]
pub fn all() -> Vec<Explanation> {
    let errors = ErrorCode::ALL
        .map(|code| Explanation::new(Kind::Error, code.number()..=code.number(), format!("{code:?}"), code.text()));
    errors
        .into_iter()
        .chain(errors::results())
        .chain(errors::regions())
        .chain(rejects::all())
        .chain(transport::all())
        .collect()
}

/// The codes that are meant: by number (decimal or 0x…), else by name, else those whose name or meaning has all the words. Letter
/// case, `-`, `_` and spaces in names do not matter, nor does `IBV_WC_` before the name of a status.
#[must_use]
pub fn find(kind: Option<Kind>, meant: &str) -> Vec<Explanation> {
    let mut found = all();
    found.retain(|one| kind.is_none_or(|kind| kind == one.kind));
    let digits = meant.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    if let Ok(number) = digits.unwrap_or_else(|| meant.parse()) {
        found.retain(|one| (one.code..=one.last).contains(&number));
        return found;
    }
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let wanted = plain(meant);
    let wanted = wanted.strip_prefix("ibvwc").unwrap_or(&wanted);
    if found.iter().any(|one| plain(&one.name) == *wanted) {
        found.retain(|one| plain(&one.name) == *wanted);
        return found;
    }
    let meant = meant.to_lowercase();
    found.retain(|one| {
        let said = format!("{} {}", one.name, one.text.meaning).to_lowercase();
        meant.split_whitespace().all(|word| said.contains(word))
    });
    if wanted.is_empty() { Vec::new() } else { found }
}

#[cfg(test)]
mod tests;
