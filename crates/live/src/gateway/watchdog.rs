//! A second process that removes the routing rules when this one hangs or is killed.
//!
//! This process sends it a byte every half second. If none arrives for ten seconds, as after
//! SIGSTOP or in a deadlock, the second process removes the rules, and the kernel forwards. It
//! reports that with a byte on its standard output. If this process goes on, it resets its
//! connections, whose hosts have exchanged segments without it, and diverts packets again.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bentpipe_types::{Span, Time};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::diversion;

/// First word of the second process's command line.
pub(super) const COMMAND: &str = "watch";

/// Interval of the bytes that show that the process runs.
const BEAT_INTERVAL: Span = Span::from_millis(500);

/// Time without a byte after which the rules are removed. Connections survive shorter stops.
const PATIENCE_MS: u16 = 10_000;

/// The second process, as this process sees it.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
    /// `None` once the process ends in order.
    beats: Option<ChildStdin>,
    reports: ChildStdout,
    next_beat: Time,
}

impl Watchdog {
    /// Starts the second process for the rules of these routing tables. `command` is the program
    /// and its first words.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub(super) fn start(command: &[OsString], tables: [u32; 2]) -> io::Result<Self> {
        let Some((program, words)) = command.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut child = Command::new(program)
            .args(words)
            .arg(COMMAND)
            .args(tables.map(|table| table.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Signals of a terminal are for this process.
            .process_group(0)
            .spawn()?;
        let (beats, reports) = (child.stdin.take(), child.stdout.take());
        let (Some(beats), Some(reports)) = (beats, reports) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        for descriptor in [beats.as_fd(), reports.as_fd()] {
            fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Self {
            child,
            beats: Some(beats),
            reports,
            next_beat: Time::ZERO,
        })
    }

    /// Shows that the process runs. Returns true if the rules have been removed.
    pub(super) fn beat(&mut self, now: Time) -> bool {
        if now < self.next_beat {
            return false;
        }
        self.next_beat = now + BEAT_INTERVAL;
        if let Some(beats) = &mut self.beats {
            let _ = beats.write(&[1]);
        }
        let mut report = [0; 16];
        matches!(self.reports.read(&mut report), Ok(1..))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.beats.take());
        let _ = self.child.wait();
    }
}

/// The second process: removes the rules of these routing tables when the first one hangs, and what
/// is left of it when it has ended.
///
/// # Errors
/// If a system call fails.
pub(super) fn watch(tables: [u32; 2]) -> io::Result<()> {
    let (mut beats, mut reports) = (io::stdin(), io::stdout());
    let mut patience = PollTimeout::from(PATIENCE_MS);
    let mut bytes = [0; 64];
    loop {
        let mut waiting = [PollFd::new(beats.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, patience) {
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => {
                diversion::remove_rules(tables)?;
                let _ = writeln!(
                    io::stderr(),
                    "bentpipe-gateway: the gateway does not respond: its rules are removed, and the kernel forwards packets"
                );
                reports.write_all(&[1])?;
                reports.flush()?;
                patience = PollTimeout::NONE;
            }
            Ok(_) => {
                // Buffered reads would delay the end.
                if beats.read(&mut bytes)? == 0 {
                    // Its devices may exist a moment longer.
                    return diversion::remove_all(tables);
                }
                patience = PollTimeout::from(PATIENCE_MS);
            }
        }
    }
}
