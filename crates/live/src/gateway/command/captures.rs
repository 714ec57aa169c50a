//! Capture files, each locked against other commands while it is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::console::CommandError;
use super::scenario_source::reason;

/// Captures of links in the working folder.
///
/// The lock is held on a file beside each capture, because the capture itself may be replaced. The
/// Python package has the same locks (`bentpipe.files.reserved`).
#[derive(Debug)]
pub(super) struct Captures {
    files: Vec<(String, PathBuf)>,
    locks: Vec<(PathBuf, File)>,
}

impl Captures {
    /// Names the capture of each link, once, and locks it.
    pub(super) fn reserve(links: &[String]) -> Result<Self, CommandError> {
        let mut captures = Self {
            files: Vec::new(),
            locks: Vec::new(),
        };
        for link in links {
            if captures.files.iter().any(|(known, _)| known == link) {
                continue;
            }
            let path = PathBuf::from(format!("{link}.pcapng"));
            match lock_beside(&path) {
                Ok(Some(lock)) => captures.locks.push(lock),
                Ok(None) => {
                    let shown = path.display();
                    let message = format!("--pcap {link}: another command is writing {shown}");
                    return Err(CommandError::Request(message));
                }
                Err(error) if is_refusal(&error) => {
                    let (shown, why) = (path.display(), reason(&error));
                    let message = format!("--pcap {link}: {shown}: {why}");
                    return Err(CommandError::Request(message));
                }
                // An unknown link is refused later.
                Err(_) => {}
            }
            captures.files.push((link.clone(), path));
        }
        Ok(captures)
    }

    /// Returns the links and their files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &Path)> {
        (self.files.iter()).map(|(link, path)| (link.as_str(), path.as_path()))
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        for (path, _) in &self.locks {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether no file can be made in the folder.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// Locks a file beside `path`. Returns its path, or `None` if another command holds the lock.
fn lock_beside(path: &Path) -> io::Result<Option<(PathBuf, File)>> {
    // A capture that is a symbolic link is written where the link points.
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let beside = whole.with_file_name(format!(".{name}.lock"));
    loop {
        let file = (File::options().read(true).write(true).create(true))
            .truncate(false)
            .open(&beside)?;
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            // The file system may have no locks.
            Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
        }
        // The previous holder may have removed the lock file between the two calls.
        let (held, current) = (file.metadata()?, std::fs::metadata(&beside));
        if current.is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())) {
            return Ok(Some((beside, file)));
        }
    }
}
