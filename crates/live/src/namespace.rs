//! A network namespace that lives as long as its handle.

use std::fs::{self, File};
use std::io;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// An unnamed network namespace. Nothing is left of it when this handle and everything opened in it
/// are dropped, however the process ends.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Creates a namespace that has only its loopback interface, which is down.
    ///
    /// IPv6 addresses in it are usable at once. Duplicate address detection (RFC 4862 section 5.4)
    /// is off, since nobody else is there, and it would cost a second.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN, or if the kernel has no network namespaces.
    pub fn new() -> io::Result<Self> {
        // A namespace belongs to the thread that creates it, so that a separate thread is needed.
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
                // A kernel without IPv6 lacks these parameters.
                let _ = namespace.set(&format!("net.ipv6.conf.{scope}.{name}"), value);
            }
        }
        Ok(namespace)
    }

    /// Runs `work` inside the namespace. Sockets and devices that it opens, and threads that it
    /// starts, belong to the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or `work` panics.
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

    /// Moves the calling thread into the namespace, for the rest of the thread's life.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn join(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Sets a network parameter of the kernel (such as `net.ipv4.tcp_sack`) in this namespace only.
    ///
    /// # Errors
    /// If the parameter does not exist or rejects the value.
    pub fn set(&self, parameter: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/{}", parameter.replace('.', "/"));
        self.enter(|| fs::write(&path, value))?
            .map_err(|error| io::Error::new(error.kind(), format!("{parameter}: {error}")))
    }

    /// Reads a network parameter of the kernel.
    ///
    /// # Errors
    /// If the parameter does not exist.
    pub fn parameter(&self, parameter: &str) -> io::Result<String> {
        let path = format!("/proc/sys/{}", parameter.replace('.', "/"));
        let value = self.enter(|| fs::read_to_string(&path))??;
        Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
