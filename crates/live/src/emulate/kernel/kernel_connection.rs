//! One TCP connection of the kernel, as its application uses it.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use bentpipe_host::SocketId;
use bentpipe_tcp::{CALL, Calls, Events, FailureKind, Statistics};
use bentpipe_types::{Endpoint, filler};

/// Bytes per read or write call.
pub(super) const CHUNK: usize = CALL as usize;

/// A TCP connection of the kernel.
#[derive(Debug)]
pub(super) struct KernelConnection {
    pub(super) id: SocketId,
    /// Index of its application.
    pub(super) owner: usize,
    pub(super) stream: TcpStream,
    pub(super) local: Endpoint,
    pub(super) remote: Endpoint,
    /// Whether the connection is being opened.
    pub(super) opening: bool,
    /// Bytes that the kernel has not accepted yet, and bytes it has.
    pub(super) to_write: u64,
    pub(super) written: u64,
    calls: Calls,
    /// Whether the kernel accepted all writes so far and more bytes are waiting. The next write
    /// follows after other connections had their turn.
    pub(super) has_more_to_write: bool,
    /// Whether to close after the last byte, and whether that was done.
    pub(super) close_requested: bool,
    pub(super) closed: bool,
    /// Bytes acknowledged at the last query, and whether the kernel is to be queried.
    pub(super) acknowledged: u64,
    pub(super) watches_acknowledgment: bool,
    /// Counters of the kernel at the last query.
    pub(super) last_counters: Option<Statistics>,
    /// Bytes received, and those of them that the application has not read.
    pub(super) received: u64,
    readable: u64,
    /// Whether received bytes are discarded.
    pub(super) discards: bool,
    /// Whether the peer has closed.
    pub(super) peer_closed: bool,
    pub(super) failure: Option<FailureKind>,
    /// Whether the connection is over.
    pub(super) gone: bool,
    pub(super) events: Events,
    /// Whether the connection is in the list of those with events.
    pub(super) in_event_list: bool,
    /// Events polled for: readable, writable.
    pub(super) polled: (bool, bool),
}

impl KernelConnection {
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
            has_more_to_write: false,
            close_requested: false,
            closed: false,
            acknowledged: 0,
            watches_acknowledgment: false,
            last_counters: None,
            received: 0,
            readable: 0,
            discards: false,
            peer_closed: false,
            failure: None,
            gone: false,
            events: Events::NONE,
            in_event_list: false,
            polled: (false, false),
        }
    }

    /// Takes received bytes for the application.
    pub(super) fn read(&mut self, maximum: u64) -> u64 {
        let read = self.readable.min(maximum);
        self.readable -= read;
        read
    }

    /// Whether the kernel is to be queried for acknowledged data.
    pub(super) fn awaits_acknowledgment(&self) -> bool {
        self.watches_acknowledgment
            && !self.gone
            && self.to_write == 0
            && self.acknowledged < self.written
    }

    /// Events to poll for: readable, writable.
    pub(super) fn interest(&self) -> (bool, bool) {
        if self.opening {
            return (false, true);
        }
        (!self.peer_closed, self.to_write > 0)
    }

    /// Handles the end of the opening: the connection is established or has failed.
    pub(super) fn on_opened(&mut self) {
        match self.stream.take_error() {
            Ok(None) => {
                self.opening = false;
                self.events |= Events::ESTABLISHED;
            }
            Ok(Some(error)) | Err(error) => self.fail(&error),
        }
    }

    /// Writes as much as the kernel accepts, then closes if requested. Returns true if anything was
    /// accepted.
    pub(super) fn flush(&mut self, stream_bytes: &mut StreamBytes) -> bool {
        let before = self.written;
        // At most 16 calls, so that other connections have their turn. Writability is not polled:
        // Linux reports a socket whose send buffer is exceeded as not writable, and yet accepts
        // the next call.
        self.has_more_to_write = (0..16).all(|_| self.write_call(stream_bytes));
        if self.to_write == 0 && self.close_requested && !self.closed && !self.gone && !self.opening
        {
            self.closed = true;
            // The counters must be read while the kernel has them: once both sides are closed, the
            // connection may be in TIME-WAIT, which has none.
            self.watches_acknowledgment = true;
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
            self.finish_if_closed();
        }
        self.written > before
    }

    /// Writes the bytes of the next call. Returns true if the kernel accepted all of them.
    fn write_call(&mut self, stream_bytes: &mut StreamBytes) -> bool {
        if self.gone || self.opening || self.to_write == 0 {
            return false;
        }
        let call = self.calls.next(self.to_write);
        match self
            .stream
            .write(stream_bytes.at(self.written, call as usize))
        {
            Ok(length) => {
                self.written += length as u64;
                self.to_write -= length as u64;
                self.calls.wrote(call, length as u64)
            }
            Err(error) => {
                if !would_block(&error) {
                    self.fail(&error);
                }
                false
            }
        }
    }

    /// Reads received bytes. Returns their number, and the offset of the first one that differs
    /// from those sent.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> (u64, Option<u64>) {
        if self.gone || self.peer_closed || self.opening {
            return (0, None);
        }
        match self.stream.read(buffer) {
            Ok(0) => {
                self.peer_closed = true;
                self.events |= Events::PEER_CLOSED;
                self.finish_if_closed();
                (0, None)
            }
            Ok(length) => {
                let at = filler::first_difference(self.received, &buffer[..length]);
                let mismatch = at.map(|at| self.received + at as u64);
                self.received += length as u64;
                if !self.discards {
                    self.readable += length as u64;
                    self.events |= Events::READABLE;
                }
                (length as u64, mismatch)
            }
            Err(error) if would_block(&error) => (0, None),
            Err(error) => {
                self.fail(&error);
                (0, None)
            }
        }
    }

    /// Records that the kernel reports all data as acknowledged.
    pub(super) fn set_acknowledged(&mut self) {
        self.acknowledged = self.written;
        self.events |= Events::DRAINED;
        if let Ok(Some(error)) = self.stream.take_error() {
            self.fail(&error);
        }
        self.finish_if_closed();
    }

    /// Marks a connection as over once both sides are closed; the kernel does the rest. If the
    /// application waits for the last acknowledgment, that comes first.
    fn finish_if_closed(&mut self) {
        if self.closed && self.peer_closed && !self.gone && !self.awaits_acknowledgment() {
            self.gone = true;
            self.events |= Events::CLOSED;
        }
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
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

/// A part of the byte stream, which is the same for all connections.
pub(super) struct StreamBytes {
    from: u64,
    bytes: Vec<u8>,
}

impl StreamBytes {
    pub(super) fn new() -> Self {
        Self {
            from: u64::MAX,
            bytes: vec![0; 2 * CHUNK],
        }
    }

    /// Returns `length` bytes, at most those of one call, from `offset` on.
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

pub(super) fn would_block(error: &io::Error) -> bool {
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
    fn writes_continue_until_the_kernel_buffer_is_full() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let end = Endpoint {
            address: Address(0),
            port: 1,
        };
        let mut connection = KernelConnection::new(SocketId::new(0, 0), 0, stream, end, end);
        let mut stream_bytes = StreamBytes::new();
        // The peer does not read, so that the kernel stops accepting bytes at some point.
        connection.to_write = 1 << 30;
        let mut turns = 0;
        while connection.flush(&mut stream_bytes) && connection.has_more_to_write {
            turns += 1;
            assert_eq!(connection.written, turns * 16 * CALL);
        }
        assert!(!connection.has_more_to_write && connection.to_write > 0);
        assert!(connection.written < (turns + 1) * 16 * CALL);
        // Once all bytes are written, the connection no longer asks for a turn.
        connection.to_write = 0;
        assert!(!connection.flush(&mut stream_bytes) && !connection.has_more_to_write);
    }
}
