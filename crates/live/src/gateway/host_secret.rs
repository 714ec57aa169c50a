//! The secret of this machine from which sequence numbers and timestamps are derived.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use bentpipe_scenario::HostSecret;
use nix::time::{ClockId, clock_gettime};

/// Directory of files that last until the machine restarts.
pub(super) const RUNTIME_DIRECTORY: &str = "/run/bentpipe-gateway";

/// Returns the secret of this machine. It is the same for a restarted gateway, if the directory can
/// be written.
pub(super) fn host_secret() -> HostSecret {
    let path = Path::new(RUNTIME_DIRECTORY).join("secret");
    let bytes = stored(&path).or_else(|_| random()).unwrap_or_default();
    let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
    let clock = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    HostSecret {
        keys: [word(0), word(8)],
        clock_ms: u64::try_from(clock.as_millis()).unwrap_or(0),
    }
}

/// Creates the directory for files that last until the machine restarts.
pub(super) fn create_runtime_directory() -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o755).create(RUNTIME_DIRECTORY) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Reads the secret, and creates it before the first use.
fn stored(path: &Path) -> io::Result<[u8; 16]> {
    create_runtime_directory()?;
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(path);
    match created {
        Ok(mut file) => {
            let bytes = random()?;
            file.write_all(&bytes)?;
            Ok(bytes)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut bytes = [0; 16];
            File::open(path)?.read_exact(&mut bytes)?;
            Ok(bytes)
        }
        Err(error) => Err(error),
    }
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
