//! Commands of a user's own, inside a host.
//!
//! A command knows the other hosts by name: it sees an `/etc/hosts` of its own. It carries a mark in
//! its environment that says whose it is, so that [`remove_leftovers`] finds what a killed emulation
//! has left behind.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Namespace;

/// A command, and where it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The host.
    pub host: String,
    /// Program and arguments.
    pub words: Vec<String>,
    /// It is what is waited for; the others end with it.
    pub waited_for: bool,
}

/// The mark: the emulation's process, and when that was started (a number may be used again).
const MARK: &str = "BENTPIPE_EMULATION";

/// Commands that run; they end with this.
#[derive(Debug, Default)]
pub(crate) struct Running {
    children: Vec<(Child, bool)>,
    files: Vec<PathBuf>,
}

impl Running {
    /// Starts a command in a namespace.
    pub(crate) fn start(
        &mut self,
        command: &Command,
        space: &Namespace,
        names: &[(String, IpAddr)],
    ) -> io::Result<()> {
        let Some((program, arguments)) = command.words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let id = std::process::id();
        let hosts = std::env::temp_dir().join(format!("bentpipe-{id}-{}.hosts", command.host));
        let mut file = fs::File::create(&hosts)?;
        // Programs look up their own machine; where nobody answers, that would take ten seconds.
        let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        writeln!(file, "127.0.0.1 localhost {}", own.trim())?;
        writeln!(file, "::1 localhost")?;
        for (name, address) in names {
            writeln!(file, "{address} {name}")?;
        }
        drop(file);
        self.files.push(hosts.clone());
        let mark = format!("{id}.{}", started(id)?);
        let child = space.enter(|| {
            // A mount namespace of this thread's own, so that the file is nobody else's.
            if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
                let none = None::<&str>;
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                let _ = mount(none, "/", none, private, none);
                let _ = mount(Some(&hosts), "/etc/hosts", none, MsFlags::MS_BIND, none);
                // No name server is reachable; that there is none is known at once.
                let empty = Some("/dev/null");
                let _ = mount(empty, "/etc/resolv.conf", none, MsFlags::MS_BIND, none);
            }
            let mut started = std::process::Command::new(program);
            started
                .args(arguments)
                .env(MARK, mark)
                .env("BENTPIPE_HOST", &command.host);
            if !command.waited_for {
                // The terminal is for one.
                started.stdin(Stdio::null());
            }
            started.spawn()
        })??;
        self.children.push((child, command.waited_for));
        Ok(())
    }

    /// The exit status of what is waited for, once it has ended.
    pub(crate) fn finished(&mut self) -> Option<i32> {
        let (child, _) = self.children.iter_mut().find(|(_, waited)| *waited)?;
        let status = child.try_wait().ok()??;
        Some(status.code().unwrap_or(128))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            if !matches!(child.try_wait(), Ok(Some(_))) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        // Their children, too.
        let id = std::process::id();
        if let Ok(started) = started(id) {
            end_marked(|mark| mark == format!("{id}.{started}"));
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

/// When a process was started, in the kernel's ticks.
fn started(id: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name in parentheses may have anything in it; the rest is numbers.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other("/proc/PID/stat is not as it was"))
}

/// Ends processes that carry a mark of which `whose` says so. Returns how many.
fn end_marked(whose: impl Fn(&str) -> bool) -> usize {
    let mut ended = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        let prefix = format!("{MARK}=");
        let mark = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(prefix.as_bytes()));
        if mark.is_some_and(|mark| whose(&String::from_utf8_lossy(mark)))
            && kill(Pid::from_raw(id), Signal::SIGKILL).is_ok()
        {
            ended += 1;
        }
    }
    ended
}

/// Ends what emulations that are no more have left running, and removes their files. Returns how many
/// processes that were.
pub fn remove_leftovers() -> usize {
    let lives = |mark: &str| {
        let Some((id, start)) = mark.split_once('.') else {
            return true; // none of ours
        };
        match (id.parse().map(started), start.parse::<u64>()) {
            (Ok(Ok(started)), Ok(start)) => started == start,
            (Ok(Err(_)), Ok(_)) => false,
            _ => true,
        }
    };
    let ended = end_marked(|mark| !lives(mark));
    let files = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    for entry in files.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| {
            let rest = name.strip_prefix("bentpipe-")?.strip_suffix(".hosts")?;
            rest.split_once('-')?.0.parse::<u32>().ok()
        });
        if id.is_some_and(|id| started(id).is_err()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    ended
}
