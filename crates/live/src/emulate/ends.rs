//! The kernel's ends of flows: ordinary sockets. One thread plays all that send, one all that receive:
//! with a thread for each, a thousand flows were two thousand threads, which took seconds to start and
//! made packets three times as late.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_types::{Span, Time, filler};
use nix::errno::Errno;
use socket2::{Domain, SockRef, Socket, Type};

use crate::Clock;
use crate::poller::Poller;

/// Read or written at once.
const CHUNK: usize = 256 << 10;

/// Points of a curve are at least this far apart: a bound on memory.
const BETWEEN_POINTS: Span = Span::from_millis(1);

/// No wait is longer before it is looked whether the run is over.
const PATIENCE: Span = Span::from_millis(50);

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

/// A socket that waits for a flow's sender. To be called inside the receiver's host.
pub(crate) fn listen(local: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&local.into())?;
    socket.listen(8)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Whether the kernel has this congestion control.
pub(crate) fn offers(congestion_control: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_congestion(congestion_control.as_bytes())
}

/// A socket for a flow's sender, which is bound to `local`. To be called inside its host.
pub(crate) fn sender_socket(local: SocketAddr, congestion_control: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
    // By the socket, not as the namespace's default: that the kernel only grants to those which its
    // first namespace allows everybody.
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    socket.bind(&local.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// An end that opens the connection at `start`, and writes `size` bytes, or without end.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) flow: usize,
    pub(crate) socket: Socket,
    pub(crate) to: SocketAddr,
    pub(crate) start: Time,
    pub(crate) size: Option<u64>,
}

/// Where a sender is.
#[derive(Debug)]
enum Stage {
    Opening(Socket),
    Writing(TcpStream),
    Over(Option<TcpStream>),
}

/// The bytes of streams, from some place on: every flow's stream is the same.
struct Filled {
    from: u64,
    bytes: Vec<u8>,
}

impl Filled {
    /// At most `length` bytes from `offset` on.
    fn at(&mut self, offset: u64, length: usize) -> &[u8] {
        let least = length.min(CHUNK / 4);
        let held = offset.checked_sub(self.from);
        let held = held.filter(|skipped| *skipped as usize + least <= self.bytes.len());
        let skipped = held.unwrap_or_else(|| {
            self.from = offset;
            filler::fill(offset, &mut self.bytes);
            0
        }) as usize;
        let end = self.bytes.len().min(skipped + length);
        &self.bytes[skipped..end]
    }
}

/// Plays the senders until all have written what they had to, or the run is over. By flow.
pub(crate) fn send(
    mut senders: Vec<Sender>,
    ending: Ending<'_>,
) -> io::Result<Vec<(usize, Passed)>> {
    // The last of the list is the next to start.
    senders.sort_by_key(|sender| std::cmp::Reverse(sender.start));
    let mut poller = Poller::new()?;
    let mut playing: Vec<(usize, Option<u64>, Stage, Passed)> = Vec::new();
    let mut filled = Filled {
        from: u64::MAX,
        bytes: vec![0; CHUNK],
    };
    let mut ready = Vec::new();
    let mut left = senders.len();
    while left > 0 && !ending.is_over() {
        let now = ending.clock.now();
        while let Some(sender) = senders.pop_if(|sender| sender.start <= now) {
            let mut passed = Passed::default();
            let stage = match sender.socket.connect(&sender.to.into()) {
                Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => {
                    passed.failure = failure(&error);
                    left -= 1;
                    Stage::Over(None)
                }
                _ => {
                    poller.add_write(&sender.socket, playing.len() as u64)?;
                    Stage::Opening(sender.socket)
                }
            };
            playing.push((sender.flow, sender.size, stage, passed));
        }
        let next = senders.last().map_or(ending.end, |sender| sender.start);
        let span = ending.clock.until(next.min(ending.end)).min(PATIENCE);
        poller.wait(span, |number| ready.push(number as usize))?;
        for number in ready.drain(..) {
            let (_, size, stage, passed) = &mut playing[number];
            let mut now = || ending.clock.now();
            let before = std::mem::replace(stage, Stage::Over(None));
            *stage = step(before, *size, passed, &mut filled, &mut now);
            if let Stage::Over(stream) = stage {
                if let Some(stream) = stream {
                    poller.remove(&*stream)?;
                }
                left -= 1;
            }
        }
    }
    let started = playing.into_iter().map(|(flow, _, stage, mut passed)| {
        match stage {
            // As long as it lasted, nobody answered.
            Stage::Opening(_) => passed.failure = Some("gave up"),
            Stage::Writing(stream) => passed.stream = Some(stream),
            Stage::Over(stream) => passed.stream = stream,
        }
        (flow, passed)
    });
    let never = senders
        .iter()
        .map(|sender| (sender.flow, Passed::default()));
    Ok(started.chain(never).collect())
}

/// A sender's socket can be written, or has failed.
fn step(
    stage: Stage,
    size: Option<u64>,
    passed: &mut Passed,
    filled: &mut Filled,
    now: &mut dyn FnMut() -> Time,
) -> Stage {
    let mut stream = match stage {
        Stage::Opening(socket) => {
            if let Ok(Some(error)) | Err(error) = socket.take_error() {
                passed.failure = failure(&error);
                return Stage::Over(Some(socket.into()));
            }
            passed.connected = Some(now());
            TcpStream::from(socket)
        }
        Stage::Writing(stream) => stream,
        over @ Stage::Over(_) => return over,
    };
    let left = size.map_or(u64::MAX, |size| size - passed.bytes);
    if left > 0 {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        match stream.write(filled.at(passed.bytes, length)) {
            Ok(length) => passed.note(now(), passed.bytes + length as u64),
            Err(error) if is_pause(&error) => {}
            Err(error) => {
                passed.failure = failure(&error);
                return Stage::Over(Some(stream));
            }
        }
    }
    if size.is_some_and(|size| passed.bytes >= size) {
        passed.finished = Some(now());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        return Stage::Over(Some(stream));
    }
    Stage::Writing(stream)
}

/// An end that takes one connection, and reads to its end.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) flow: usize,
    pub(crate) listener: TcpListener,
}

/// Plays the receivers until all have read everything, or the run is over. By flow.
pub(crate) fn receive(
    receivers: Vec<Receiver>,
    ending: Ending<'_>,
) -> io::Result<Vec<(usize, Passed)>> {
    let mut poller = Poller::new()?;
    for (number, receiver) in receivers.iter().enumerate() {
        poller.add_read(&receiver.listener, number as u64)?;
    }
    let mut all: Vec<Passed> = receivers.iter().map(|_| Passed::default()).collect();
    let mut buffer = vec![0; CHUNK];
    let mut ready = Vec::new();
    let mut left = receivers.len();
    while left > 0 && !ending.is_over() {
        let span = ending.clock.until(ending.end).min(PATIENCE);
        poller.wait(span, |number| ready.push(number as usize))?;
        for number in ready.drain(..) {
            let passed = &mut all[number];
            let Some(stream) = &mut passed.stream else {
                let listener = &receivers[number].listener;
                let Ok((stream, _)) = listener.accept() else {
                    continue;
                };
                // There is one to each.
                poller.remove(listener)?;
                stream.set_nonblocking(true)?;
                poller.add_read(&stream, number as u64)?;
                passed.connected = Some(ending.clock.now());
                passed.stream = Some(stream);
                continue;
            };
            match stream.read(&mut buffer) {
                Ok(0) => passed.finished = Some(ending.clock.now()),
                Ok(length) => {
                    let now = ending.clock.now();
                    if let Some(at) = filler::first_difference(passed.bytes, &buffer[..length]) {
                        passed.mismatch.get_or_insert(passed.bytes + at as u64);
                    }
                    passed.note(now, passed.bytes + length as u64);
                    continue;
                }
                Err(error) if is_pause(&error) => continue,
                Err(error) => passed.failure = failure(&error),
            }
            poller.remove(&*stream)?;
            left -= 1;
        }
    }
    let flows = receivers.iter().map(|receiver| receiver.flow);
    Ok(flows.zip(all).collect())
}

/// Ends a connection at once: nothing is left to be delivered.
pub(crate) fn cut(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

fn failure(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Some("refused"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Some("reset"),
        // The kernel has given up.
        io::ErrorKind::TimedOut => Some("gave up"),
        _ => Some("reset"),
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
