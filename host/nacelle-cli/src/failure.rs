// SPDX-License-Identifier: Apache-2.0
//! How a command fails: a sentence, what to try, and an exit code.

use std::fmt;
use std::io::IsTerminal;

use nacelle::ErrorCode;
use nacelle_device::DeviceError;
use nacelle_link::LinkError;
use serde::Serialize;

/// What each exit code says; docs/how-to/command-line.md has the same.
pub(crate) const EXIT_CODES: [(u8, &str); 7] = [
    (0, "done"),
    (FOUND, "`nacelle doctor` has found why a device cannot be called"),
    (USAGE, "wrong arguments or files"),
    (3, "unreachable: no wire, no such device, no response, or the connection was lost"),
    (4, "refused: the connection, the regions, or another kernel"),
    (TIMEOUT, "timeout: no progress within `--timeout`"),
    (REMOTE, "remote error: an unknown function, a kernel that failed, a broken protocol, a wrong result"),
];
/// Exit code for a fault that was looked for and found.
const FOUND: u8 = 1;
/// Exit code for wrong arguments and files.
pub(crate) const USAGE: u8 = 2;
/// Exit code for what did not happen in time.
pub(crate) const TIMEOUT: u8 = 5;
/// Exit code for a device that answers wrongly.
pub(crate) const REMOTE: u8 = 6;

/// Why a command failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    /// The kind of error, as in [`ErrorCode`], or `usage`, `check`, or `diagnosed`.
    code: String,
    message: String,
    #[serde(rename = "try")]
    hint: String,
    exit_code: u8,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: "usage".into(), message: message.into(), hint: hint.into(), exit_code: USAGE }
    }

    /// Something did not happen in time.
    pub(crate) fn timeout(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: "timeout".into(), message: message.into(), hint: hint.into(), exit_code: TIMEOUT }
    }

    /// A diagnosis has found why a device cannot be called.
    pub(crate) fn diagnosed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: "diagnosed".into(), message: message.into(), hint: hint.into(), exit_code: FOUND }
    }

    /// A device that is published does not answer.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        let code = ErrorCode::Unreachable;
        let hint = "start it again, or list the devices that run with 'nacelle ls'".into();
        Self { code: name(code), message: message.into(), hint, exit_code: code.exit_code() }
    }

    /// What is no device of this machine's wire does not answer.
    pub(crate) fn unreachable_by(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let code = ErrorCode::Unreachable;
        Self { code: name(code), message: message.into(), hint: hint.into(), exit_code: code.exit_code() }
    }

    /// The device has not done what it was asked to, for a reason of its own.
    pub(crate) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let code = ErrorCode::Refused;
        Self { code: name(code), message: message.into(), hint: hint.into(), exit_code: code.exit_code() }
    }

    /// Whether the device has answered, in place of doing what it was asked.
    pub(crate) fn is_answer(&self) -> bool {
        [ErrorCode::Refused, ErrorCode::Management].map(name).contains(&self.code)
    }

    /// What is asked for needs a terminal.
    pub(crate) fn no_terminal() -> Self {
        Self::usage("there is no terminal to draw on", "add --once for a table")
    }

    /// The device gave a wrong result.
    pub(crate) fn check(message: impl Into<String>) -> Self {
        let hint = "run it again with --capture FILE, and report what you see".into();
        Self { code: "check".into(), message: message.into(), hint, exit_code: REMOTE }
    }

    /// The command line does not say what to do. Of what the parser writes, the sentences before the usage are kept.
    pub(crate) fn arguments(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let said = text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
        let said: Vec<String> = said.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let said = said.join("; ");
        Self::usage(said.strip_prefix("error: ").unwrap_or(&said), "run it with --help to see what it takes")
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to try.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Writes it to stderr, as text or as one JSON line.
    pub(crate) fn tell(&self, json: bool) {
        if json {
            let line = serde_json::json!({ "error": self });
            eprintln!("{line}");
        } else {
            let (on, off) = if colours() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
            eprintln!("{on}error{off}: {}", self.message);
            eprintln!("try: {}", self.hint);
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Whether stderr is a terminal whose user has not asked for plain text (no-color.org).
fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

impl From<nacelle::Error> for Failure {
    fn from(error: nacelle::Error) -> Self {
        Self {
            code: name(error.code()),
            message: error.to_string(),
            hint: error.hint().into(),
            exit_code: error.code().exit_code(),
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        nacelle::Error::from(error).into()
    }
}

impl From<nacelle_manage::Error> for Failure {
    fn from(error: nacelle_manage::Error) -> Self {
        nacelle::Error::from(error).into()
    }
}

impl From<nacelle_copy::Error> for Failure {
    fn from(error: nacelle_copy::Error) -> Self {
        Self {
            code: name(error.code()),
            message: error.to_string(),
            hint: error.hint().into(),
            exit_code: error.code().exit_code(),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self {
            code: name(error.code()),
            message: error.to_string(),
            hint: error.hint().into(),
            exit_code: error.code().exit_code(),
        }
    }
}

fn name(code: ErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
