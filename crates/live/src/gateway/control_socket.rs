//! The control socket: requests and answers as lines of JSON, and metrics over HTTP.
//!
//! A request is an object on a line: `{"request": "status"}`. The answer is an object on a line,
//! with `"ok": true`, or with `"ok": false` and `"error"`. A client may send several requests, one
//! after the other. Instead, it may send one HTTP request for `/metrics`; on the loopback TCP port
//! it can send only that.
//!
//! Everything is bounded: clients, the length of requests, and the time for each.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};
use socket2::SockRef;

use super::privileges;

/// Most clients at once, at each socket.
const MAX_CLIENTS: usize = 16;
/// Longest request in bytes.
const MAX_REQUEST: usize = 8192;
/// Most headers of an HTTP request.
const MAX_HEADERS: usize = 64;
/// Interval at which waiting threads check whether to end, in milliseconds.
const CHECK_MS: u8 = 100;
/// Time without a complete request after which a client is disconnected.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Longest time for which a client may delay an answer.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// Answers the requests of all clients.
pub(super) trait Handler: Send + Sync + 'static {
    /// Returns the fields of the answer, or the reason why there is none.
    fn answer(&self, request: &Value) -> Result<Value, String>;

    /// Returns the metrics and their media type.
    fn metrics(&self) -> Result<(String, &'static str), String>;
}

/// Open sockets, which are closed when this is dropped.
#[derive(Debug)]
pub(super) struct Sockets {
    is_closed: Arc<AtomicBool>,
    path: Option<PathBuf>,
}

/// A socket that accepts clients and does not serve them yet.
#[derive(Debug)]
pub(super) enum Listener {
    Control(UnixListener, PathBuf),
    Metrics(TcpListener),
}

impl Listener {
    /// Opens the control socket, for its owner only. A socket without a process behind it is
    /// replaced.
    pub(super) fn control(path: &Path) -> io::Result<Self> {
        if let Ok(found) = fs::symlink_metadata(path)
            && found.file_type().is_socket()
            && UnixStream::connect(path).is_err()
        {
            fs::remove_file(path)?;
        }
        // Bound under another name first, so that nobody can connect before the permissions are
        // set.
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let listener = UnixListener::bind(&beside)?;
        let placed = fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))
            // Unlike a renaming, this fails if the name is in use.
            .and_then(|()| fs::hard_link(&beside, path));
        fs::remove_file(&beside)?;
        placed?;
        listener.set_nonblocking(true)?;
        Ok(Self::Control(listener, path.to_owned()))
    }

    /// Opens a TCP port for metrics at a loopback address.
    pub(super) fn metrics(address: SocketAddr) -> io::Result<Self> {
        debug_assert!(is_loopback(address.ip()));
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self::Metrics(listener))
    }
}

/// Whether only processes of this machine can connect to an address.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.is_loopback()
}

impl Sockets {
    /// Serves the clients of these sockets, in threads of their own.
    /// With `confined`, these have no privileges.
    pub(super) fn serve(
        listeners: Vec<Listener>,
        handler: &Arc<impl Handler>,
        confined: bool,
    ) -> Self {
        let is_closed = Arc::new(AtomicBool::new(false));
        let mut path = None;
        for listener in listeners {
            let (handler, is_closed) = (Arc::clone(handler), Arc::clone(&is_closed));
            if let Listener::Control(_, at) = &listener {
                path = Some(at.clone());
            }
            thread::spawn(move || {
                if confined {
                    privileges::keep_only(&[]);
                }
                match listener {
                    Listener::Control(listener, _) => {
                        let accept = || listener.accept().map(|(stream, _)| stream);
                        accept_clients(&listener, accept, &handler, &is_closed);
                    }
                    Listener::Metrics(listener) => {
                        let accept = || listener.accept().map(|(stream, _)| stream);
                        accept_clients(&listener, accept, &handler, &is_closed);
                    }
                }
            });
        }
        Self { is_closed, path }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// A connected client.
trait Client: Read + Write + AsFd + Send + 'static {
    /// Whether it may send requests other than for metrics.
    const MAY_CONTROL: bool;
}

impl Client for UnixStream {
    const MAY_CONTROL: bool = true;
}

impl Client for TcpStream {
    const MAY_CONTROL: bool = false;
}

fn set_timeouts(client: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(client);
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_millis(CHECK_MS.into())))?;
    socket.set_write_timeout(Some(WRITE_TIME))
}

fn accept_clients<C: Client>(
    socket: &impl AsFd,
    accept: impl Fn() -> io::Result<C>,
    handler: &Arc<impl Handler>,
    is_closed: &Arc<AtomicBool>,
) {
    let clients = Arc::new(AtomicUsize::new(0));
    while !is_closed.load(Ordering::Relaxed) {
        let mut waiting = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut waiting, PollTimeout::from(CHECK_MS)), Ok(1)) {
            continue;
        }
        let Ok(client) = accept() else {
            // Out of descriptors: the client that waits would make the loop spin.
            pause();
            continue;
        };
        if clients.load(Ordering::Relaxed) >= MAX_CLIENTS {
            // It sees the end of the stream.
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (handler, is_closed) = (Arc::clone(handler), Arc::clone(is_closed));
        let count = Arc::clone(&clients);
        thread::spawn(move || {
            // An error is the client's: it is disconnected.
            let _ = serve_client(client, handler.as_ref(), &is_closed);
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own")]
fn pause() {
    thread::sleep(Duration::from_millis(CHECK_MS.into()));
}

fn serve_client<C: Client>(
    mut client: C,
    handler: &impl Handler,
    is_closed: &AtomicBool,
) -> io::Result<()> {
    set_timeouts(&client)?;
    let mut received = Vec::new();
    loop {
        let Some(line) = read_request(&mut client, &mut received, is_closed)? else {
            return Ok(());
        };
        if line.starts_with(b"GET ") || !C::MAY_CONTROL {
            return answer_http(&mut client, &line, handler);
        }
        let parsed = serde_json::from_slice::<Value>(&line);
        let answer = parsed
            .map_err(|error| format!("not a JSON object: {error}"))
            .and_then(|request| handler.answer(&request));
        let answer = match answer {
            Ok(mut fields) => {
                fields["ok"] = true.into();
                fields
            }
            Err(error) => json!({ "ok": false, "error": error }),
        };
        client.write_all(format!("{answer}\n").as_bytes())?;
    }
}

/// Returns the next request: a line, or the head of an HTTP request. `None` at the end of the
/// stream, or if the client takes too long.
fn read_request(
    client: &mut impl Read,
    received: &mut Vec<u8>,
    is_closed: &AtomicBool,
) -> io::Result<Option<Vec<u8>>> {
    let mut checks = REQUEST_TIME.as_millis() / u128::from(CHECK_MS);
    let mut piece = [0; 1024];
    loop {
        let is_http = b"GET ".iter().zip(received.iter()).all(|(a, b)| a == b)
            && received.len() >= b"GET ".len();
        let end: &[u8] = if is_http { b"\r\n\r\n" } else { b"\n" };
        let found = received.windows(end.len()).position(|bytes| bytes == end);
        if let Some(at) = found {
            let rest = received.split_off(at + end.len());
            return Ok(Some(std::mem::replace(received, rest)));
        }
        if received.len() > MAX_REQUEST {
            return Err(io::Error::other("the request is too long"));
        }
        if checks == 0 || is_closed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match client.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(length) => {
                received.extend_from_slice(&piece[..length]);
                // A byte at a time is no faster than nothing.
                checks = checks.saturating_sub(1);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                checks -= 1;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Answers an HTTP request (RFC 9112) and ends.
fn answer_http(client: &mut impl Write, head: &[u8], handler: &impl Handler) -> io::Result<()> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let is_complete = matches!(request.parse(head), Ok(httparse::Status::Complete(_)));
    let path = request.path.and_then(|path| path.split('?').next());
    let (status, content, media_type) = match (request.method, path) {
        _ if !is_complete => ("400 Bad Request", "bad request\n".to_owned(), "text/plain"),
        (Some("GET"), Some("/metrics")) => match handler.metrics() {
            Ok((text, media_type)) => ("200 OK", text, media_type),
            Err(error) => (
                "503 Service Unavailable",
                format!("{error}\n"),
                "text/plain",
            ),
        },
        (Some("GET"), _) => (
            "404 Not Found",
            "the metrics are at /metrics\n".to_owned(),
            "text/plain",
        ),
        _ => (
            "405 Method Not Allowed",
            "only GET is allowed\n".to_owned(),
            "text/plain",
        ),
    };
    let length = content.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(content.as_bytes())?;
    client.flush()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[derive(Debug)]
    struct Echo;

    impl Handler for Echo {
        fn answer(&self, request: &Value) -> Result<Value, String> {
            match request["request"].as_str() {
                Some(name) => Ok(json!({ "was": name })),
                None => Err("no request".to_owned()),
            }
        }

        fn metrics(&self) -> Result<(String, &'static str), String> {
            Ok(("metric 1\n".to_owned(), "text/plain"))
        }
    }

    fn open() -> (Sockets, PathBuf) {
        let name = format!(
            "bentpipe-{}-{:?}",
            std::process::id(),
            thread::current().id()
        );
        let path = std::env::temp_dir().join(name);
        let listener = Listener::control(&path).expect("a socket");
        (Sockets::serve(vec![listener], &Arc::new(Echo), false), path)
    }

    fn get(mut client: impl Read + Write, request: &str) -> String {
        client.write_all(request.as_bytes()).expect("taken");
        let mut text = String::new();
        client.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn each_line_has_an_answer() {
        let (sockets, path) = open();
        let mode = fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // A second gateway does not take the socket away.
        assert!(Listener::control(&path).is_err());
        let mut client = UnixStream::connect(&path).expect("a client");
        client
            .write_all(b"{\"request\": \"a\"}\nnonsense\n{}\n")
            .expect("taken");
        let mut lines = BufReader::new(client).lines();
        let mut next = || -> Value {
            let line = lines.next().expect("an answer").expect("text");
            serde_json::from_str(&line).expect("JSON")
        };
        assert_eq!(next(), json!({ "ok": true, "was": "a" }));
        assert_eq!(next()["ok"], false);
        assert_eq!(next(), json!({ "ok": false, "error": "no request" }));
        drop(sockets);
        assert!(!path.exists());
    }

    #[test]
    fn metrics_are_read_over_http() {
        let (_sockets, path) = open();
        let ask = |text: &str| get(UnixStream::connect(&path).expect("a client"), text);
        let answer = ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("Content-Length: 9\r\nConnection: close\r\n\r\nmetric 1\n"));
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("GET  nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn the_tcp_port_takes_nothing_but_metrics() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let Listener::Metrics(listener) = Listener::metrics(any).expect("a port") else {
            unreachable!();
        };
        let address = listener.local_addr().expect("an address");
        let _sockets = Sockets::serve(vec![Listener::Metrics(listener)], &Arc::new(Echo), false);
        let ask = |text: &str| get(TcpStream::connect(address).expect("a client"), text);
        assert!(ask("GET /metrics HTTP/1.0\r\n\r\n").ends_with("metric 1\n"));
        assert!(ask("{\"request\": \"drain\"}\n").starts_with("HTTP/1.1 400 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 4"));
    }

    #[test]
    fn long_requests_are_cut_off_and_excess_clients_turned_away() {
        let (_sockets, path) = open();
        let mut client = UnixStream::connect(&path).expect("a client");
        let _ = client.write_all(&vec![b'x'; 4 * MAX_REQUEST]);
        let mut text = Vec::new();
        let _ = client.read_to_end(&mut text);
        assert!(text.is_empty());
        let clients: Vec<UnixStream> = (0..=MAX_CLIENTS + 1)
            .map(|_| UnixStream::connect(&path).expect("a client"))
            .collect();
        let last = get(clients.last().expect("one"), "");
        assert_eq!(last, "");
    }
}
