//! One connection of the kernel's, as its application sees it.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bentpipe_host::SocketId;
use bentpipe_tcp::{CALL, Calls, Events, FailureKind, Statistics};
use bentpipe_types::{Endpoint, filler};

/// Read or written at once.
pub(super) const CHUNK: usize = CALL as usize;

/// A connection.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: SocketId,
    /// Whose it is.
    pub(super) owner: usize,
    pub(super) stream: TcpStream,
    pub(super) local: Endpoint,
    pub(super) remote: Endpoint,
    /// It is being opened.
    pub(super) opening: bool,
    /// Bytes that were given to it and that the kernel has not taken, and those that it has.
    pub(super) to_write: u64,
    pub(super) written: u64,
    calls: Calls,
    /// The kernel took all that it was given, and there is more: it is to be given that when others have had their turn.
    pub(super) goes_on: bool,
    /// To be closed behind what is to be written; and it has been.
    pub(super) closes: bool,
    pub(super) shut: bool,
    /// Bytes that were acknowledged when the kernel was last asked, and whether it is to be.
    pub(super) drained: u64,
    pub(super) watched: bool,
    /// What the kernel had counted when it was last asked.
    pub(super) counted: Option<Statistics>,
    /// Bytes that have come, and those of them that the application has not read.
    pub(super) received: u64,
    readable: u64,
    /// What comes is read by nobody.
    pub(super) sinks: bool,
    /// The peer has closed.
    pub(super) ended: bool,
    pub(super) failure: Option<FailureKind>,
    /// Nothing more will come of it.
    pub(super) gone: bool,
    pub(super) events: Events,
    /// Among those that have news.
    pub(super) listed: bool,
    /// What is polled for.
    pub(super) polled: (bool, bool),
}

impl Slot {
    pub(super) fn new(
        id: SocketId,
        owner: usize,
        stream: TcpStream,
        local: Endpoint,
        remote: Endpoint,
    ) -> Self {
        Self {
            id,
            owner,
            stream,
            local,
            remote,
            opening: false,
            to_write: 0,
            written: 0,
            calls: Calls::default(),
            goes_on: false,
            closes: false,
            shut: false,
            drained: 0,
            watched: false,
            counted: None,
            received: 0,
            readable: 0,
            sinks: false,
            ended: false,
            failure: None,
            gone: false,
            events: Events::NONE,
            listed: false,
            polled: (false, false),
        }
    }

    /// Reads what has come, for the application.
    pub(super) fn read(&mut self, maximum: u64) -> u64 {
        let read = self.readable.min(maximum);
        self.readable -= read;
        read
    }

    /// The kernel is to be asked what has been acknowledged.
    pub(super) fn is_asked(&self) -> bool {
        self.watched && !self.gone && self.to_write == 0 && self.drained < self.written
    }

    /// What it is to be polled for: something to read, room to write.
    pub(super) fn interest(&self) -> (bool, bool) {
        if self.opening {
            return (false, true);
        }
        (!self.ended, self.to_write > 0)
    }

    /// The connection stands, or could not be opened.
    pub(super) fn opened(&mut self) {
        match self.stream.take_error() {
            Ok(None) => {
                self.opening = false;
                self.events |= Events::ESTABLISHED;
            }
            Ok(Some(error)) | Err(error) => self.failed(&error),
        }
    }

    /// Gives the kernel what it takes, and closes behind it. True where anything was taken.
    pub(super) fn flush(&mut self, filled: &mut Filled) -> bool {
        let before = self.written;
        // Others have their turn after some megabytes. (Whether the socket can be written is not asked then: where more was
        // sent than its memory, it is said not to be, and yet the next call is taken.)
        self.goes_on = (0..16).all(|_| self.takes_a_call(filled));
        if self.to_write == 0 && self.closes && !self.shut && !self.gone && !self.opening {
            self.shut = true;
            // What it has counted has to be asked for while the kernel has it: once both sides are closed,
            // it may be in TIME-WAIT, of which nothing is told.
            self.watched = true;
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
            self.close_both();
        }
        self.written > before
    }

    /// Writes what the next call holds. Did the kernel take all of it?
    fn takes_a_call(&mut self, filled: &mut Filled) -> bool {
        if self.gone || self.opening || self.to_write == 0 {
            return false;
        }
        let call = self.calls.next(self.to_write);
        match self.stream.write(filled.at(self.written, call as usize)) {
            Ok(length) => {
                self.written += length as u64;
                self.to_write -= length as u64;
                self.calls.wrote(call, length as u64)
            }
            Err(error) => {
                if !is_pause(&error) {
                    self.failed(&error);
                }
                false
            }
        }
    }

    /// Takes what has come. Returns how many bytes, and where they first were not those that were sent.
    pub(super) fn pull(&mut self, buffer: &mut [u8]) -> (u64, Option<u64>) {
        if self.gone || self.ended || self.opening {
            return (0, None);
        }
        match self.stream.read(buffer) {
            Ok(0) => {
                self.ended = true;
                self.events |= Events::PEER_CLOSED;
                self.close_both();
                (0, None)
            }
            Ok(length) => {
                let at = filler::first_difference(self.received, &buffer[..length]);
                let mismatch = at.map(|at| self.received + at as u64);
                self.received += length as u64;
                if !self.sinks {
                    self.readable += length as u64;
                    self.events |= Events::READABLE;
                }
                (length as u64, mismatch)
            }
            Err(error) if is_pause(&error) => (0, None),
            Err(error) => {
                self.failed(&error);
                (0, None)
            }
        }
    }

    /// The kernel says that all was acknowledged.
    pub(super) fn is_drained(&mut self) {
        self.drained = self.written;
        self.events |= Events::DRAINED;
        if let Ok(Some(error)) = self.stream.take_error() {
            self.failed(&error);
        }
        self.close_both();
    }

    /// Closed on both sides, it is over: the kernel sees to the rest. Where somebody waits to hear that all
    /// was acknowledged, that comes first.
    fn close_both(&mut self) {
        if self.shut && self.ended && !self.gone && !self.is_asked() {
            self.gone = true;
            self.events |= Events::CLOSED;
        }
    }

    pub(super) fn failed(&mut self, error: &io::Error) {
        let (why, event) = match error.kind() {
            io::ErrorKind::ConnectionRefused => (FailureKind::Refused, Events::RESET),
            io::ErrorKind::TimedOut => (FailureKind::TimedOut, Events::TIMED_OUT),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                (FailureKind::Unreachable, Events::UNREACHABLE)
            }
            _ => (FailureKind::Reset, Events::RESET),
        };
        self.failure = Some(why);
        self.gone = true;
        self.events |= event | Events::CLOSED;
    }
}

/// The bytes of streams, from some place on: every connection's stream is the same.
pub(super) struct Filled {
    from: u64,
    bytes: Vec<u8>,
}

impl Filled {
    pub(super) fn new() -> Self {
        Self {
            from: u64::MAX,
            bytes: vec![0; 2 * CHUNK],
        }
    }

    /// `length` bytes from `offset` on, a call's at most.
    fn at(&mut self, offset: u64, length: usize) -> &[u8] {
        let held = offset.checked_sub(self.from);
        let held = held.filter(|skipped| *skipped as usize + length <= self.bytes.len());
        let skipped = held.unwrap_or_else(|| {
            self.from = offset;
            filler::fill(offset, &mut self.bytes);
            0
        }) as usize;
        &self.bytes[skipped..skipped + length]
    }
}

pub(super) fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use bentpipe_types::Address;

    use super::*;

    #[test]
    fn who_was_not_told_that_there_is_no_room_goes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let end = Endpoint {
            address: Address(0),
            port: 1,
        };
        let mut slot = Slot::new(SocketId::new(0, 0), 0, stream, end, end);
        let mut filled = Filled::new();
        // Nobody reads: some time the kernel takes no more.
        slot.to_write = 1 << 30;
        let mut turns = 0;
        while slot.flush(&mut filled) && slot.goes_on {
            turns += 1;
            assert_eq!(slot.written, turns * 16 * CALL);
        }
        assert!(!slot.goes_on && slot.to_write > 0);
        assert!(slot.written < (turns + 1) * 16 * CALL);
        // What is all written goes on no more, either.
        slot.to_write = 0;
        assert!(!slot.flush(&mut filled) && !slot.goes_on);
    }
}
