// SPDX-License-Identifier: Apache-2.0
//! The token that a device admits this caller by (docs/reference/admission.md).

use std::path::{Path, PathBuf};

use nacelle_wire::admission::Token;

use crate::Error;

/// Names the file of the token for programs that name none themselves.
const FILE_VARIABLE: &str = "NACELLE_TOKEN_FILE";

/// The token in a file of 32 hexadecimal digits.
///
/// # Errors
/// [`Error::InvalidArgument`] if the file cannot be read, or has something else in it.
pub fn token_of_file(path: &Path) -> Result<Token, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::invalid(format!("cannot read the token in {}: {error}", path.display())))?;
    let token = Token::from_hex(text.trim());
    token.ok_or_else(|| Error::invalid(format!("{} holds no token: 32 hexadecimal digits, not all 0", path.display())))
}

/// The token that the environment names.
pub(crate) fn token_of_environment() -> Result<Option<Token>, Error> {
    let path = std::env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty());
    path.map(|path| token_of_file(&PathBuf::from(path))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_nothing_of_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(token_of_file(&path).unwrap_err().to_string().contains("cannot read"));
        for wrong in ["", "5ec2e7", "5ec2e7000102030405060708090a0b0c0d", "00000000000000000000000000000000"] {
            std::fs::write(&path, wrong).unwrap();
            let error = token_of_file(&path).unwrap_err().to_string();
            assert!(error.contains("holds no token") && !error.contains("5ec2e7"), "{error}");
        }
        std::fs::write(&path, "5ec2e700010203040506070809000a0B\n").unwrap();
        assert_eq!(token_of_file(&path).unwrap().words()[0], 0x5ec2_e700);
    }
}
