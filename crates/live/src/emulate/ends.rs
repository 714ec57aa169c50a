//! The kernel's ends of a flow: ordinary sockets, a thread each.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_types::{Span, Time, filler};
use socket2::{Domain, SockRef, Socket, Type};

use crate::Clock;

/// Read or written at once.
const CHUNK: usize = 256 << 10;

/// Points of a curve are at least this far apart: a bound on memory.
const BETWEEN_POINTS: Span = Span::from_millis(1);

/// No call waits longer before it looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(50);

/// When everything ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Time,
    /// The run was broken off.
    pub(crate) stopped: &'a AtomicBool,
}

impl Ending<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.clock.now() >= self.end || self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until then, or the end.
    #[allow(clippy::disallowed_methods, reason = "the world outside has a clock")]
    fn sleep_until(&self, time: Time) {
        while !self.is_over() {
            let left = Duration::from_nanos(self.clock.until(time).as_nanos());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(PATIENCE));
        }
    }
}

/// What one end saw.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// When the connection was there.
    pub(crate) connected: Option<Time>,
    /// When the last byte that there was to pass had passed.
    pub(crate) finished: Option<Time>,
    pub(crate) bytes: u64,
    /// Times, and bytes until then.
    pub(crate) curve: Vec<(Time, u64)>,
    /// How it failed: an outcome's name.
    pub(crate) failure: Option<&'static str>,
    /// Where the bytes first were not those that were sent.
    pub(crate) mismatch: Option<u64>,
    /// Kept open, so that the kernel still knows of it.
    pub(crate) stream: Option<TcpStream>,
}

impl Passed {
    pub(crate) fn note(&mut self, now: Time, bytes: u64) {
        self.bytes = bytes;
        match self.curve.last_mut() {
            Some((last, value)) if now.since(*last) < BETWEEN_POINTS => *value = bytes,
            _ => self.curve.push((now, bytes)),
        }
    }
}

pub(crate) fn listen(local: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::V4(local).into())?;
    socket.listen(8)?;
    socket.set_read_timeout(Some(PATIENCE))?; // of accept(), too
    Ok(socket.into())
}

/// A socket for a flow's sender.
pub(crate) fn sender_socket(congestion_control: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // By the socket, not as the namespace's default: that the kernel only grants to those which its
    // first namespace allows everybody.
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    Ok(socket)
}

/// Opens the connection at `start`, and writes `size` bytes, or without end.
pub(crate) fn send(
    socket: Socket,
    to: SocketAddrV4,
    start: Time,
    size: Option<u64>,
    ending: Ending<'_>,
) -> Passed {
    let mut passed = Passed::default();
    ending.sleep_until(start);
    if ending.is_over() {
        return passed;
    }
    let left = Duration::from_nanos(ending.clock.until(ending.end).as_nanos());
    let patience = left.max(Duration::from_millis(1));
    if let Err(error) = socket.connect_timeout(&SocketAddr::V4(to).into(), patience) {
        passed.failure = failure(&error);
        return passed;
    }
    passed.connected = Some(ending.clock.now());
    let mut stream = TcpStream::from(socket);
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let mut bytes = vec![0; CHUNK];
    let mut filled_at = u64::MAX;
    while !ending.is_over() {
        let left = size.map_or(u64::MAX, |size| size - passed.bytes);
        if left == 0 {
            passed.finished = Some(ending.clock.now());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            break;
        }
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        if filled_at != passed.bytes {
            filler::fill(passed.bytes, &mut bytes[..length]);
            filled_at = passed.bytes;
        }
        match stream.write(&bytes[..length]) {
            Ok(length) => passed.note(ending.clock.now(), passed.bytes + length as u64),
            Err(error) if is_pause(&error) => {}
            Err(error) => {
                passed.failure = failure(&error);
                break;
            }
        }
    }
    passed.stream = Some(stream);
    passed
}

/// Takes one connection, and reads to its end.
pub(crate) fn receive(listener: &TcpListener, ending: Ending<'_>) -> Passed {
    let mut passed = Passed::default();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_pause(&error) && !ending.is_over() => {}
            Err(_) => return passed,
        }
    };
    passed.connected = Some(ending.clock.now());
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut buffer = vec![0; CHUNK];
    while !ending.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => {
                passed.finished = Some(ending.clock.now());
                break;
            }
            Ok(length) => {
                let now = ending.clock.now();
                if let Some(at) = filler::first_difference(passed.bytes, &buffer[..length]) {
                    passed.mismatch.get_or_insert(passed.bytes + at as u64);
                }
                passed.note(now, passed.bytes + length as u64);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => {
                passed.failure = failure(&error);
                break;
            }
        }
    }
    passed.stream = Some(stream);
    passed
}

/// Ends a connection at once: nothing is left to be delivered.
pub(crate) fn cut(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn failure(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some("refused"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Some("reset"),
        // connect() waits until the run's end at most.
        io::ErrorKind::TimedOut => Some("gave up"),
        _ => Some("reset"),
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
