// SPDX-License-Identifier: Apache-2.0
//! A socket at a path, where clients of this user connect.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::server::ServerError;

/// A socket at a path, which is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the path, so that another's socket that took its place is left alone.
    place: (u64, u64),
}

impl Listener {
    /// For processes of this user alone. A socket that its process left behind is replaced.
    ///
    /// # Errors
    /// If another process listens there, or the socket cannot be made.
    pub fn bind(path: &Path) -> Result<Self, ServerError> {
        let fail = |source| ServerError::Listen { path: path.to_owned(), source };
        let socket = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                match UnixStream::connect(path) {
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    _ => return Err(ServerError::Taken { path: path.to_owned() }),
                }
                fs::remove_file(path).and_then(|()| UnixListener::bind(path)).map_err(fail)?
            }
            bound => bound.map_err(fail)?,
        };
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        let there = fs::symlink_metadata(path).map_err(fail)?;
        Ok(Self { socket, path: path.to_owned(), place: (there.dev(), there.ino()) })
    }

    /// The next that wants to connect.
    #[must_use]
    pub fn accept(&self) -> Option<UnixStream> {
        // One that has gone already, or cannot be taken for want of descriptors, is no error of this server.
        self.socket.accept().ok().map(|(stream, _)| stream)
    }

    /// The socket, to wait for it.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == self.place) {
            let _gone_already_is_fine = fs::remove_file(&self.path);
        }
    }
}
