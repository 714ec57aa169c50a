//! Waits for descriptors and time, at a cost that does not depend on the number of descriptors.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use bentpipe_types::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;

/// Most descriptors reported by one call.
const EVENTS_PER_CALL: usize = 64;

/// A set of polled descriptors, each with a number.
pub(crate) struct Poller {
    epoll: Epoll,
    events: [EpollEvent; EVENTS_PER_CALL],
}

impl Poller {
    /// Creates an empty set.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: [EpollEvent::empty(); EVENTS_PER_CALL],
        })
    }

    /// Adds a descriptor to be reported while it is readable.
    pub(crate) fn add_read(&self, descriptor: impl AsFd, number: u64) -> io::Result<()> {
        self.add(descriptor, EpollFlags::EPOLLIN, number)
    }

    /// Adds a descriptor to be reported on any of these events.
    pub(crate) fn add(
        &self,
        descriptor: impl AsFd,
        what: EpollFlags,
        number: u64,
    ) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(what, number))?)
    }

    /// Changes the events of a descriptor.
    pub(crate) fn modify(
        &self,
        descriptor: impl AsFd,
        what: EpollFlags,
        number: u64,
    ) -> io::Result<()> {
        let mut event = EpollEvent::new(what, number);
        Ok(self.epoll.modify(descriptor, &mut event)?)
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(descriptor)?)
    }

    /// Waits until a descriptor is ready, or for `span`. Calls `ready` with each ready descriptor's
    /// number. Returns true if there is one.
    pub(crate) fn wait(&mut self, span: Span, mut ready: impl FnMut(u64)) -> io::Result<bool> {
        self.wait_for(span, |number, _| ready(number))
    }

    /// Like [`wait`](Self::wait), with the events of each descriptor.
    pub(crate) fn wait_for(
        &mut self,
        span: Span,
        mut ready: impl FnMut(u64, EpollFlags),
    ) -> io::Result<bool> {
        // ppoll() has a resolution of nanoseconds, epoll_wait() only of milliseconds. The epoll
        // descriptor itself can be polled.
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

/// Sleeps for `span`.
#[allow(clippy::disallowed_methods, reason = "the wall's clock is waited for")]
pub(crate) fn sleep(span: Span) {
    std::thread::sleep(Duration::from_nanos(span.as_nanos()));
}
