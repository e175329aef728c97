// SPDX-License-Identifier: Apache-2.0
//! Files for results. A file is replaced as a whole, or not at all: whenever it is read, and at whatever moment this program
//! ends, finds the old bytes or the new ones.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Symbolic links that are followed before they count as a circle, as in the kernel.
const MAX_LINKS: usize = 40;
/// Names that are tried for a draft.
const DRAFT_NAMES: u32 = 1000;

/// Writes every file, or none: all of them must be on the disk before the first takes its place.
pub(crate) fn save(files: &[(&Path, &[u8])]) -> Result<(), Failure> {
    let mut all = Vec::new();
    for (path, bytes) in files {
        all.push((path, write(path, bytes).map_err(|error| failure(path, &error))?));
    }
    all.into_iter().try_for_each(|(path, written)| written.publish().map_err(|error| failure(path, &error)))
}

/// Bytes on their way to a path.
enum Written<'a> {
    /// In a file beside the one that they are to replace.
    Draft(Draft),
    /// Where they go cannot be replaced: it is no regular file, or its directory takes no new ones.
    Open(File, &'a [u8]),
}

/// A file that is removed again unless it takes the place of another.
struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there any more if it has taken its place.
        let _ = fs::remove_file(&self.path);
    }
}

impl Written<'_> {
    fn publish(self) -> io::Result<()> {
        match self {
            Self::Draft(draft) => {
                fs::rename(&draft.path, &draft.target)?;
                // So that the new name outlives a power failure. Not every file system can do that for a directory.
                let _ = File::open(directory(&draft.target)).and_then(|dir| dir.sync_all());
                Ok(())
            }
            Self::Open(mut file, bytes) => match file.write_all(bytes) {
                // A reader that has gone away has read enough.
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
                _ => Ok(()),
            },
        }
    }
}

fn write<'a>(path: &Path, bytes: &'a [u8]) -> io::Result<Written<'a>> {
    let Some(target) = target(path)? else { return Ok(Written::Open(open_descriptor(path)?, bytes)) };
    let old = match fs::metadata(&target) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Ok(Written::Open(OpenOptions::new().write(true).open(&target)?, bytes));
    }
    let (mut file, draft) = match draft(&target) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && old.is_some() => {
            let file = OpenOptions::new().write(true).truncate(true).open(&target)?;
            return Ok(Written::Open(file, bytes));
        }
        draft => draft?,
    };
    if let Some(old) = old {
        // Only root may give a file away; then the new one is the caller's.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(Written::Draft(draft))
}

/// A new file beside `target`.
fn draft(target: &Path) -> io::Result<(File, Draft)> {
    let dir = directory(target);
    for number in 0..DRAFT_NAMES {
        let path = dir.join(format!(".nacelle-{}-{number}.draft", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            file => return Ok((file?, Draft { path, target: target.to_owned() })),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The file that a path names, behind all symbolic links: it is replaced, not a link to it. `None` if the path names an open
/// file of a process, as /dev/stdout does: that cannot be replaced.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Some(name) = path.file_name() else { return Err(ErrorKind::IsADirectory.into()) };
        let dir = directory(&path).canonicalize()?;
        if dir.starts_with("/proc") {
            return Ok(None);
        }
        let here = dir.join(name);
        match fs::read_link(&here) {
            Ok(link) => path = dir.join(link),
            Err(_) => return Ok(Some(here)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The open file that a path names. What is written to it comes behind what is there.
fn open_descriptor(path: &Path) -> io::Result<File> {
    let (named, own) = (fs::metadata(path)?, File::from(io::stdout().as_fd().try_clone_to_owned()?));
    let stdout = own.metadata()?;
    if (named.dev(), named.ino()) == (stdout.dev(), stdout.ino()) {
        return Ok(own);
    }
    OpenOptions::new().append(true).open(path)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("free some space in {}, or name another file with -o", directory(path).display())
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a file in a directory that you may write to with -o".into()
        }
        _ => "name another file with -o".into(),
    };
    Failure::usage(format!("cannot write {}: {error}", path.display()), hint)
}
