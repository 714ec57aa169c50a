//! Waiting for descriptors and for the time, at the same cost however many descriptors there are.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use bentpipe_types::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;

/// Descriptors that are told of at once.
const EVENTS: usize = 64;

/// What is waited for: descriptors, each with the number that it is told by.
pub(crate) struct Poller {
    epoll: Epoll,
    events: [EpollEvent; EVENTS],
}

impl Poller {
    /// Nothing as yet.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: [EpollEvent::empty(); EVENTS],
        })
    }

    /// This, too, while it can be read.
    pub(crate) fn add_read(&self, descriptor: impl AsFd, number: u64) -> io::Result<()> {
        self.add(descriptor, EpollFlags::EPOLLIN, number)
    }

    /// This, too, when any of this can be said of it.
    pub(crate) fn add(
        &self,
        descriptor: impl AsFd,
        what: EpollFlags,
        number: u64,
    ) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(what, number))?)
    }

    /// It is waited for something else.
    pub(crate) fn modify(
        &self,
        descriptor: impl AsFd,
        what: EpollFlags,
        number: u64,
    ) -> io::Result<()> {
        let mut event = EpollEvent::new(what, number);
        Ok(self.epoll.modify(descriptor, &mut event)?)
    }

    /// No longer this.
    pub(crate) fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(descriptor)?)
    }

    /// Waits until a descriptor is ready, or for `span`; tells `ready` of those that are. True if any is.
    pub(crate) fn wait(&mut self, span: Span, mut ready: impl FnMut(u64)) -> io::Result<bool> {
        self.wait_for(span, |number, _| ready(number))
    }

    /// The same; `ready` is told, too, what can be said of them.
    pub(crate) fn wait_for(
        &mut self,
        span: Span,
        mut ready: impl FnMut(u64, EpollFlags),
    ) -> io::Result<bool> {
        // epoll_wait() counts milliseconds, ppoll() nanoseconds; and epoll's own descriptor can be polled.
        if span > Span::ZERO {
            let mut own = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            let timeout = TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()));
            match ppoll(&mut own, Some(timeout), None) {
                Ok(0) | Err(Errno::EINTR) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.epoll.wait(&mut self.events, PollTimeout::ZERO) {
            Ok(count) => {
                for event in &self.events[..count] {
                    ready(event.data(), event.events());
                }
                Ok(count > 0)
            }
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for nothing but the time.
#[allow(clippy::disallowed_methods, reason = "the wall's clock is waited for")]
pub(crate) fn sleep(span: Span) {
    std::thread::sleep(Duration::from_nanos(span.as_nanos()));
}
