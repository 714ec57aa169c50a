//! The kernel's sender and receiver: ordinary sockets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use bentpipe_types::{Span, Time};
use socket2::{Domain, SockRef, Socket, Type};

use crate::Clock;

/// Timeout of each call.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes per read or write call.
const CHUNK: usize = bentpipe_tcp::CALL as usize;

/// Bytes transferred over time.
#[derive(Debug)]
pub(super) struct Progress {
    /// Time at which the sender opened the connection, or the receiver accepted it.
    pub(super) start: Time,
    /// Points in time, and total bytes.
    points: Vec<(Time, u64)>,
}

impl Progress {
    /// Returns the bytes transferred until `time`.
    pub(super) fn bytes_until(&self, time: Time) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= time);
        after.checked_sub(1).map_or(0, |last| self.points[last].1)
    }
}

pub(super) fn listen(local: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
    socket.set_read_timeout(Some(CALL_TIMEOUT))?; // of accept(), too
    socket.bind(&local.into())?;
    socket.listen(1)?;
    Ok(socket.into())
}

/// Opens a connection, writes for `duration`, and resets it, so that nothing is left to be
/// delivered. Stores the start time in `opened`.
pub(super) fn send(
    to: SocketAddr,
    congestion_control: &str,
    clock: Clock,
    duration: Span,
    opened: &OnceLock<Time>,
) -> io::Result<Progress> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    // Set on the socket, not as the namespace's default: Linux allows that only for congestion
    // controls that the initial namespace allows for everybody.
    socket
        .set_tcp_congestion(congestion_control.as_bytes())
        .map_err(|error| io::Error::new(error.kind(), format!("{congestion_control}: {error}")))?;
    let start = *opened.get_or_init(|| clock.now());
    socket.connect_timeout(&to.into(), CALL_TIMEOUT)?;
    let mut stream = TcpStream::from(socket);
    let end = start + duration;
    let bytes = vec![b'x'; CHUNK];
    let mut points = Vec::new();
    let mut total = 0;
    loop {
        let left = clock.until(end);
        if left == Span::ZERO {
            break;
        }
        let left = Duration::from_nanos(left.as_nanos()).max(Duration::from_millis(1));
        stream.set_write_timeout(Some(left))?;
        match stream.write(&bytes) {
            Ok(length) => {
                total += length as u64;
                points.push((clock.now(), total));
            }
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(error),
        }
    }
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    Ok(Progress { start, points })
}

/// Reads until the sender resets the connection.
pub(super) fn receive(listener: &TcpListener, clock: Clock) -> io::Result<Progress> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    let start = clock.now();
    let mut buffer = vec![0; CHUNK];
    let mut points = Vec::new();
    let mut total = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                total += length as u64;
                points.push((clock.now(), total));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Progress { start, points })
}

fn would_block(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
