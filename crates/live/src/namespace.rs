//! A network namespace that lives as long as its handle.

use std::fs::{self, File};
use std::io;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace without a name: nothing of it is left when this and all that was opened in it
/// are dropped, however the process ends.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Makes a namespace, with its loopback interface down and no other.
    ///
    /// IPv6 addresses in it are usable at once: nothing else is there that could have them, so that
    /// duplicate address detection (RFC 4862 section 5.4) would only cost a second.
    ///
    /// # Errors
    /// Without the right to (CAP_SYS_ADMIN), and where the kernel has no network namespaces.
    pub fn new() -> io::Result<Self> {
        // A namespace belongs to the thread that makes it: one for this alone.
        let file = thread::scope(|scope| {
            scope
                .spawn(|| {
                    unshare(CloneFlags::CLONE_NEWNET)?;
                    File::open("/proc/thread-self/ns/net")
                })
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the namespace's thread panicked")))
        })?;
        let namespace = Self { file };
        for scope in ["all", "default"] {
            for (name, value) in [("accept_dad", "0"), ("router_solicitations", "0")] {
                // A kernel without IPv6 has none of these.
                let _ = namespace.set(&format!("net.ipv6.conf.{scope}.{name}"), value);
            }
        }
        Ok(namespace)
    }

    /// Runs `work` inside: sockets and devices that it opens, and threads that it starts, stay
    /// there.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or `work` panics.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    setns(&self.file, CloneFlags::CLONE_NEWNET)?;
                    Ok(work())
                })
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the work inside a namespace panicked")))
        })
    }

    /// The calling thread is inside from now on. Only for one that was started for that.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn join(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Sets one of the kernel's network parameters (`net.ipv4.tcp_sack`), in this namespace alone.
    ///
    /// # Errors
    /// When there is no such parameter, or it does not take the value.
    pub fn set(&self, parameter: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/{}", parameter.replace('.', "/"));
        self.enter(|| fs::write(&path, value))?
            .map_err(|error| io::Error::new(error.kind(), format!("{parameter}: {error}")))
    }

    /// Reads one of the kernel's network parameters.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn parameter(&self, parameter: &str) -> io::Result<String> {
        let path = format!("/proc/sys/{}", parameter.replace('.', "/"));
        let value = self.enter(|| fs::read_to_string(&path))??;
        Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
