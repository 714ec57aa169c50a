//! `bentpipe-gateway`: a gateway of a scenario between a Linux machine's own interfaces.

#[cfg(target_os = "linux")]
mod process {
    use std::io::{self, IsTerminal, Write};
    use std::os::fd::AsFd;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitCode};

    use bentpipe_live::gateway::command::{CommandError, Console, Wake, run};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::signal::{SigSet, Signal};
    use nix::sys::signalfd::{SfdFlags, SignalFd};

    /// Longest wait for a signal in milliseconds: the delay of messages.
    const WAIT_MS: u8 = 50;

    /// Signals that would end the process by default, and leave the routing rules behind.
    const WITHOUT_EFFECT: [Signal; 6] = [
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGVTALRM,
        Signal::SIGIO,
        Signal::SIGPWR,
    ];

    /// The streams and signals of this process.
    #[derive(Debug, Default)]
    struct Process {
        signals: Option<SignalFd>,
    }

    impl Console for Process {
        fn print(&mut self, text: &str) -> io::Result<()> {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()
        }

        fn log(&mut self, line: &str) {
            let _ = writeln!(io::stderr(), "{line}");
        }

        fn check_interrupt(&mut self) -> io::Result<()> {
            // Until `handle_signals`, a signal ends the process.
            Ok(())
        }

        fn handle_signals(&mut self) -> io::Result<()> {
            let mut signals = SigSet::from(Signal::SIGINT) | SigSet::from(Signal::SIGTERM);
            for signal in WITHOUT_EFFECT {
                signals.add(signal);
            }
            if !is_ignored(Signal::SIGHUP) {
                signals.add(Signal::SIGHUP);
            }
            // Threads that start later inherit the mask.
            signals.thread_block()?;
            let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
            self.signals = Some(SignalFd::with_flags(&signals, flags)?);
            Ok(())
        }

        fn drops_privileges(&self) -> bool {
            true
        }

        fn wait(&mut self) -> io::Result<Wake> {
            let Some(signals) = &mut self.signals else {
                return Ok(Wake::Nothing);
            };
            let mut waiting = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            poll(&mut waiting, PollTimeout::from(WAIT_MS))?;
            while let Some(received) = signals.read_signal()? {
                let is = |signal: Signal| signal as u32 == received.ssi_signo;
                // A terminal sends SIGHUP when it is closed.
                if is(Signal::SIGHUP) && !io::stdin().is_terminal() {
                    return Ok(Wake::Reload);
                }
                if !WITHOUT_EFFECT.into_iter().any(is) {
                    return Ok(Wake::End);
                }
            }
            Ok(Wake::Nothing)
        }
    }

    /// Whether the process ignores a signal, by the mask in /proc/self/status.
    fn is_ignored(signal: Signal) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = (status.lines()).find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.unwrap_or(0) >> (signal as u32 - 1) & 1 == 1
    }

    /// glibc's settings by which memory of idle connections is returned to the system: allocations
    /// of a page or more are mapped one by one. Otherwise the heap never shrinks below its largest
    /// use, since something at its end is always in use.
    const MALLOC_SETTINGS: (&str, &str) = (
        "GLIBC_TUNABLES",
        "glibc.malloc.mmap_threshold=4096:glibc.malloc.mmap_max=60000",
    );

    /// Starts the program again with [`MALLOC_SETTINGS`], which are read at the start of a process
    /// only. Settings of the operator have precedence.
    fn restart_with_malloc_settings() {
        let (name, value) = MALLOC_SETTINGS;
        if std::env::var_os(name).is_none() {
            let mut command = Command::new("/proc/self/exe");
            if let Some(own_name) = std::env::args_os().next() {
                command.arg0(own_name);
            }
            command.args(std::env::args_os().skip(1)).env(name, value);
            // It returns only if that failed. Then it goes on without them.
            let _ = command.exec();
        }
    }

    pub(super) fn main() -> ExitCode {
        restart_with_malloc_settings();
        let (status, message) = match run(
            std::env::args_os().skip(1).collect(),
            &mut Process::default(),
        ) {
            Ok(status) => (status, None),
            Err(CommandError::Request(message)) => (2, Some(message)),
            Err(CommandError::Failed(message)) => (1, Some(message)),
            // The reader closed the pipe.
            Err(CommandError::Console(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                (1, None)
            }
            Err(CommandError::Console(error)) => {
                let text = error.to_string().to_lowercase();
                let reason = text.split(" (os error").next().unwrap_or_default();
                (1, Some(format!("standard output: {reason}")))
            }
        };
        if let Some(message) = message {
            let words: Vec<&str> = message.split_whitespace().collect();
            let _ = writeln!(io::stderr(), "bentpipe: {}", words.join(" "));
        }
        ExitCode::from(status)
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    process::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("bentpipe: a gateway needs Linux");
    std::process::ExitCode::from(1)
}
