//! The kernel's end: ordinary blocking sockets with timeouts.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bentpipe_types::Span;
use socket2::{Domain, SockRef, Socket, Type};

use super::data::{CHUNK, Destination, Source, Tally};

/// Timeout of each call: long enough for retransmissions of a lost SYN.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Behaviour of the kernel's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) key: u64,
    pub(super) bytes: u64,
    /// Whether it sends only after the peer has closed.
    pub(super) after_peer: bool,
    /// Number of bytes read before it aborts.
    pub(super) abort_after: Option<u64>,
    /// Number of bytes read before it pauses, duration of the pause, and receive buffer.
    pub(super) pause: Option<(u64, Span, u64)>,
}

/// Data that the kernel's end sent and received.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) sent: Tally,
    pub(super) received: Tally,
    pub(super) read_error: Option<io::ErrorKind>,
    pub(super) write_error: Option<io::ErrorKind>,
}

/// Opens a connection and carries out the plan.
pub(super) fn connect(remote: SocketAddr, plan: &Plan) -> io::Result<Report> {
    let socket = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    if let Some((_, _, buffer)) = plan.pause {
        socket.set_recv_buffer_size(buffer as usize)?;
    }
    socket.connect_timeout(&remote.into(), CALL_TIMEOUT)?;
    exchange_data(socket.into(), plan)
}

/// Opens a listening socket.
pub(super) fn listen(local: SocketAddr, plan: &Plan) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
    if let Some((_, _, buffer)) = plan.pause {
        socket.set_recv_buffer_size(buffer as usize)?;
    }
    // The timeout applies to accept(), too.
    socket.set_read_timeout(Some(CALL_TIMEOUT))?;
    socket.bind(&local.into())?;
    socket.listen(128)?;
    Ok(socket.into())
}

/// Accepts one connection and carries out the plan.
pub(super) fn accept(listener: &TcpListener, plan: &Plan) -> io::Result<Report> {
    let (stream, _) = listener.accept()?;
    exchange_data(stream, plan)
}

fn exchange_data(stream: TcpStream, plan: &Plan) -> io::Result<Report> {
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    stream.set_write_timeout(Some(CALL_TIMEOUT))?;
    if plan.after_peer {
        let (received, read_error) = receive(&stream, plan);
        let (sent, write_error) = send(&stream, plan);
        return Ok(Report {
            sent,
            received,
            read_error,
            write_error,
        });
    }
    thread::scope(|scope| {
        let writer = scope.spawn(|| send(&stream, plan));
        let (received, read_error) = receive(&stream, plan);
        if plan.abort_after.is_some() {
            // With a linger time of zero, closing sends a RST. The writer has ended by then, since
            // it has no data.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        }
        let (sent, write_error) = writer
            .join()
            .map_err(|_| io::Error::other("the writer panicked"))?;
        Ok(Report {
            sent,
            received,
            read_error,
            write_error,
        })
    })
}

fn send(mut stream: &TcpStream, plan: &Plan) -> (Tally, Option<io::ErrorKind>) {
    let mut source = Source::new(plan.key, plan.bytes);
    let mut error = None;
    while source.remaining() > 0 {
        match stream.write(source.peek()) {
            Ok(length) => source.take(length),
            Err(reason) if reason.kind() == io::ErrorKind::Interrupted => {}
            Err(reason) => {
                error = Some(reason.kind());
                break;
            }
        }
    }
    if plan.abort_after.is_none() {
        // Fails if the peer has reset the connection, which `error` reports.
        let _ = stream.shutdown(Shutdown::Write);
    }
    (source.tally(), error)
}

fn receive(mut stream: &TcpStream, plan: &Plan) -> (Tally, Option<io::ErrorKind>) {
    let mut destination = Destination::default();
    let mut buffer = vec![0; CHUNK];
    let mut pause = plan.pause;
    let error = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break None,
            Ok(length) => destination.put(&buffer[..length]),
            Err(reason) if reason.kind() == io::ErrorKind::Interrupted => {}
            Err(reason) => break Some(reason.kind()),
        }
        let so_far = destination.bytes();
        if plan.abort_after.is_some_and(|limit| so_far >= limit) {
            break None;
        }
        if let Some((after, span, _)) = pause
            && so_far >= after
        {
            pause = None;
            sleep(span);
        }
    };
    (destination.tally(), error)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the kernel's end is no core; it is a reader that stops"
)]
fn sleep(span: Span) {
    thread::sleep(Duration::from_nanos(span.as_nanos()));
}
