//! User commands that run inside a host's namespace.
//!
//! A command resolves the other hosts by name through its own `/etc/hosts`. An environment variable
//! marks it with its emulation, so that [`remove_leftovers`] finds processes left behind by a
//! killed emulation.

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

/// A command and the host it runs in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Name of the host.
    pub host: String,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Whether the run waits for this command. The others are ended with it.
    pub waited_for: bool,
}

/// Environment variable of the mark: the emulation's process number and start time, since process
/// numbers are reused.
const MARK: &str = "BENTPIPE_EMULATION";

/// Running commands. They are ended when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct RunningCommands {
    children: Vec<(Child, bool)>,
    files: Vec<PathBuf>,
}

impl RunningCommands {
    /// Starts a command in a namespace.
    pub(crate) fn start(
        &mut self,
        command: &Command,
        namespace: &Namespace,
        names: &[(String, IpAddr)],
    ) -> io::Result<()> {
        let Some((program, arguments)) = command.words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let id = std::process::id();
        let hosts = std::env::temp_dir().join(format!("bentpipe-{id}-{}.hosts", command.host));
        let mut file = fs::File::create(&hosts)?;
        // Programs look up their own host name. Without an entry, the lookup would time out after
        // ten seconds.
        let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        writeln!(file, "127.0.0.1 localhost {}", own.trim())?;
        writeln!(file, "::1 localhost")?;
        for (name, address) in names {
            writeln!(file, "{address} {name}")?;
        }
        drop(file);
        self.files.push(hosts.clone());
        let mark = format!("{id}.{}", process_start(id)?);
        let child = namespace.enter(|| {
            // Unshare the mount namespace of this thread, so that nobody else sees the file.
            if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
                let none = None::<&str>;
                let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
                let _ = mount(none, "/", none, private, none);
                let _ = mount(Some(&hosts), "/etc/hosts", none, MsFlags::MS_BIND, none);
                // An empty resolv.conf makes lookups fail at once, since no name server is
                // reachable.
                let empty = Some("/dev/null");
                let _ = mount(empty, "/etc/resolv.conf", none, MsFlags::MS_BIND, none);
            }
            let mut started = std::process::Command::new(program);
            started
                .args(arguments)
                .env(MARK, mark)
                .env("BENTPIPE_HOST", &command.host);
            if !command.waited_for {
                // Only one command reads from the terminal.
                started.stdin(Stdio::null());
            }
            started.spawn()
        })??;
        self.children.push((child, command.waited_for));
        Ok(())
    }

    /// Returns the exit status of the awaited command, once it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<i32> {
        let (child, _) = self.children.iter_mut().find(|(_, waited)| *waited)?;
        let status = child.try_wait().ok()??;
        Some(status.code().unwrap_or(128))
    }
}

impl Drop for RunningCommands {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            if !matches!(child.try_wait(), Ok(Some(_))) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        // Ends the commands' children, too.
        let id = std::process::id();
        if let Ok(started) = process_start(id) {
            end_marked_processes(|mark| mark == format!("{id}.{started}"));
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns the start time of a process, in kernel ticks.
fn process_start(id: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name in parentheses may contain any character; numbers follow it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other("unexpected content of /proc/PID/stat"))
}

/// Ends the processes whose mark satisfies `whose`. Returns their number.
fn end_marked_processes(whose: impl Fn(&str) -> bool) -> usize {
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

/// Ends processes left behind by emulations that no longer run, and removes their files. Returns
/// the number of processes.
pub fn remove_leftovers() -> usize {
    let lives = |mark: &str| {
        let Some((id, start)) = mark.split_once('.') else {
            return true; // none of ours
        };
        match (id.parse().map(process_start), start.parse::<u64>()) {
            (Ok(Ok(started)), Ok(start)) => started == start,
            (Ok(Err(_)), Ok(_)) => false,
            _ => true,
        }
    };
    let ended = end_marked_processes(|mark| !lives(mark));
    let files = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    for entry in files.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| {
            let rest = name.strip_prefix("bentpipe-")?.strip_suffix(".hosts")?;
            rest.split_once('-')?.0.parse::<u32>().ok()
        });
        if id.is_some_and(|id| process_start(id).is_err()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    ended
}
