// SPDX-License-Identifier: Apache-2.0
//! The registers of a device over the network, by IPbus.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nacelle_ipbus::{Remote, RemoteError, SessionConfig, SessionError, Transaction};
use nacelle_manage::map::device;
use nacelle_manage::{Access, Registers, access};
use nacelle_wire::ipbus::InfoCode;

use crate::failure::Failure;

/// The variable that has the token if no file is named.
const VARIABLE: &str = "NACELLE_TOKEN";
/// Losses in a row after which the device counts as gone.
const ATTEMPTS: u32 = 8;
/// Longest file of a token.
const MAX_TOKEN_FILE: u64 = 1 << 10;

/// What a client writes to a device to be let in.
pub(crate) struct Token([u8; 16]);

impl Token {
    /// From the file, else from the environment, where other users do not see it, as they would see an argument.
    pub(crate) fn find(file: Option<&Path>) -> Result<Option<Self>, Failure> {
        let wrong = |whence: &dyn Display| {
            Failure::usage(
                format!("{whence} has no token"),
                "a token is 32 hexadecimal digits, as in the registers CCI_TOKEN",
            )
        };
        let variable = || std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        match (file, variable()) {
            (Some(file), _) => Self::parse(&read(file)?).ok_or_else(|| wrong(&file.display())).map(Some),
            (None, Some(text)) => Self::parse(&text).ok_or_else(|| wrong(&format!("${VARIABLE}"))).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// 32 hexadecimal digits; what separates words of them is passed over.
    fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|one| !one.is_whitespace() && !"_:-".contains(*one)).collect();
        let whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        whole.then(|| u128::from_str_radix(&digits, 16).ok()).flatten().map(|number| Self(number.to_be_bytes()))
    }
}

/// Why a file of the user's cannot be read.
pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "check that it exists and that you may read it",
        )
    }
}

/// Reads a file that others than its owner cannot read.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let failed = unreadable(path);
    let file = File::open(path).map_err(&failed)?;
    if file.metadata().map_err(&failed)?.permissions().mode() & 0o077 != 0 {
        let hint = format!("let nobody else read it: chmod 600 {}", path.display());
        return Err(Failure::usage(format!("other users can read the secret in {}", path.display()), hint));
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// The registers of one device. The login, if there is one, ends with it.
pub(crate) struct RemoteRegisters {
    remote: Remote,
    address: SocketAddr,
    authorised: bool,
}

impl RemoteRegisters {
    /// Finds the device at `address`, which must answer within `timeout` each time, and logs in if there is a token.
    pub(crate) fn connect(address: SocketAddr, timeout: Duration, token: Option<&Token>) -> Result<Self, Failure> {
        let config = SessionConfig { timeout: timeout / ATTEMPTS, attempts: ATTEMPTS };
        let remote = Remote::connect(address, config).map_err(|error| failure(address, false, error))?;
        let mut registers = Self { remote, address, authorised: false };
        if let Some(Token(token)) = token {
            let login = device::CCI_LOGIN_0.at(device::BASE);
            registers.remote.log_in(login, *token).map_err(|error| match error {
                RemoteError::Refused { .. } => Failure::refused(
                    format!("the token is not that of the device at {address}"),
                    "a device without a token lets nobody in: set one on its own machine, in CCI_TOKEN_0 to CCI_TOKEN_3",
                ),
                error => failure(address, false, error),
            })?;
            registers.authorised = true;
        }
        Ok(registers)
    }

    fn transact(&mut self, transactions: &[Transaction]) -> Result<Vec<u32>, Failure> {
        self.remote.transact(transactions).map_err(|error| failure(self.address, self.authorised, error))
    }
}

impl Drop for RemoteRegisters {
    fn drop(&mut self) {
        if self.authorised {
            // The device has few places for clients that are logged in. One that is gone has forgotten this one anyway.
            let address = device::CCI_LOGOUT.at(device::BASE);
            let _ = self.remote.transact(&[Transaction::Write { address, value: 0 }]);
        }
    }
}

impl Registers for RemoteRegisters {
    type Error = Failure;

    fn read(&mut self, address: u32) -> Result<u32, Failure> {
        Ok(self.read_all(&[address])?[0])
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), Failure> {
        self.transact(&[Transaction::Write { address, value }]).map(drop)
    }

    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), Failure> {
        let writes: Vec<_> = writes.iter().map(|&(address, value)| Transaction::Write { address, value }).collect();
        self.transact(&writes).map(drop)
    }

    fn read_all(&mut self, addresses: &[u32]) -> Result<Vec<u32>, Failure> {
        let reads: Vec<_> = addresses.iter().map(|address| Transaction::Read { address: *address }).collect();
        self.transact(&reads)
    }

    /// What is waited for is mostly there at once: if not, all is done again, one by one.
    fn access_all(&mut self, accesses: &[Access]) -> Result<Vec<u32>, Failure> {
        let transactions: Vec<_> = accesses
            .iter()
            .map(|access| match *access {
                Access::Write { address, value } => Transaction::Write { address, value },
                Access::Read { address } | Access::Until { address, .. } => Transaction::Read { address },
            })
            .collect();
        let values = self.transact(&transactions)?;
        let reads = accesses.iter().filter(|access| !matches!(access, Access::Write { .. }));
        let is_there = |(access, found): (&Access, &u32)| match *access {
            Access::Until { mask, value, .. } => found & mask == value,
            _ => true,
        };
        if reads.zip(&values).all(is_there) { Ok(values) } else { access(self, accesses) }
    }
}

/// Why the device was not read or written, and what to try.
fn failure(address: SocketAddr, authorised: bool, error: RemoteError) -> Failure {
    match error {
        RemoteError::Refused { address: register, info: info @ (InfoCode::ReadError | InfoCode::WriteError) } => {
            let what = if info == InfoCode::ReadError { "read" } else { "written" };
            if authorised {
                let hint = "either it does not exist, or only the device's own machine may do so: see 'network' in the reference of the registers";
                return Failure::refused(format!("register {register:#07x} cannot be {what} over the network"), hint);
            }
            let hint = format!("put the device's token into a file and add --token-file FILE, or into ${VARIABLE}");
            Failure::refused(
                format!("register {register:#07x} cannot be {what} without a token, or there is none"),
                hint,
            )
        }
        RemoteError::Session(SessionError::NoAnswer) => Failure::unreachable_by(
            format!("nothing at {address} answers IPbus"),
            "is the device on, is its CCI_PORT this port, does its CCI_SOURCE take this host? A slow one may need a longer --timeout",
        ),
        RemoteError::Io(error) => Failure::unreachable_by(
            format!("the device at {address} cannot be reached: {error}"),
            "is there a route to it?",
        ),
        error => Failure::check(format!("the device at {address}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_32_digits() {
        let token = |text| Token::parse(text).map(|Token(bytes)| bytes);
        let bytes = *b"nacelle token!!!";
        assert_eq!(token("6e6163656c6c6520746f6b656e212121\n"), Some(bytes));
        assert_eq!(token("6E616365_6C6C6520 746f6b65:6e212121"), Some(bytes));
        for wrong in [
            "",
            "6e6163656c6c6520746f6b656e21212",
            "6e6163656c6c6520746f6b656e2121211",
            "+e6163656c6c6520746f6b656e212121",
        ] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
    }
}
