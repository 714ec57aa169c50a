//! System calls.

mod naming;
mod options;
mod outcome;
mod poll;
mod stream;

use bentpipe_types::{Span, Time};

use super::constants::{listed, number, word};
use super::sockets::Kind;
use super::{BEGINNING, Problem, Runner};
use crate::script::{CallSpec, Expression};
use outcome::{Outcome, Waiting, error, same, value};

pub(super) use outcome::Returned;

/// A call that has not returned.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) line: u32,
    pub(super) until: Time,
    spec: CallSpec,
    waiting: Waiting,
    tolerance: Span,
    /// Whether it has returned.
    pub(super) is_over: bool,
    /// Set if it returned something unexpected.
    pub(super) problem: Option<Problem>,
}

impl Pending {
    /// Returns when it stops waiting by itself.
    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.waiting {
            Waiting::Poll { until, .. } if !self.is_over => Some(*until),
            _ => None,
        }
    }

    pub(super) fn never_returned(&self) -> Problem {
        let when = self.until.since(BEGINNING).as_secs_f64();
        Problem::wrong(
            format!("{} to return at {when:.6} s", self.spec.name),
            "it still blocks",
        )
    }
}

impl Runner {
    pub(super) fn call(&mut self, spec: &CallSpec, line: u32, origin: Time) -> Result<(), Problem> {
        if let Some(pending) = &self.pending {
            // One thread makes the calls: the previous one must return first.
            let latest = pending.until + pending.tolerance;
            while self.pending.as_ref().is_some_and(|p| !p.is_over) {
                match self.next_deadline() {
                    Some(deadline) if deadline <= latest => self.step(deadline)?,
                    _ => break,
                }
            }
            let pending = self.pending.take();
            if let Some(pending) = pending.filter(|p| !p.is_over || p.problem.is_some()) {
                let never = pending.never_returned();
                return Err(pending.problem.unwrap_or(never));
            }
        }
        let started = self.host.world.now;
        match self.start(spec)? {
            Outcome::Returned(returned) => {
                self.after_host()?;
                self.check(spec, returned)?;
                match spec.until {
                    Some(until) => {
                        let until = origin + Span::from_nanos(until);
                        let slack = self.setup.tolerance_around(until.since(started));
                        self.in_time(spec, until, slack)
                    }
                    None => Ok(()),
                }
            }
            Outcome::Blocks(waiting) => {
                let Some(until) = spec.until else {
                    let when = started.since(BEGINNING).as_secs_f64();
                    let expected = format!("{} to return at {when:.6} s", spec.name);
                    return Err(Problem::wrong(expected, "it blocks"));
                };
                let until = origin + Span::from_nanos(until);
                self.pending = Some(Pending {
                    line,
                    until,
                    spec: spec.clone(),
                    waiting,
                    tolerance: self.setup.tolerance_around(until.since(started)),
                    is_over: false,
                    problem: None,
                });
                self.after_host()
            }
        }
    }

    fn in_time(&self, spec: &CallSpec, until: Time, slack: Span) -> Result<(), Problem> {
        let now = self.host.world.now;
        if now <= until + slack && now + slack >= until {
            return Ok(());
        }
        let seconds = |t: Time| format!("{:.6} s", t.since(BEGINNING).as_secs_f64());
        Err(Problem::wrong(
            format!("{} to return at {}", spec.name, seconds(until)),
            format!("it returns at {}", seconds(now)),
        ))
    }

    /// Lets a blocked call return, if it can, after the host has run.
    pub(super) fn resume(&mut self) {
        let Some(mut pending) = self.pending.take() else {
            return;
        };
        if !pending.is_over {
            match self.go_on(&mut pending) {
                Ok(Some(returned)) => {
                    pending.is_over = true;
                    pending.problem = self
                        .check(&pending.spec, returned)
                        .and_then(|()| {
                            self.in_time(&pending.spec, pending.until, pending.tolerance)
                        })
                        .err();
                }
                Ok(None) => {}
                Err(problem) => {
                    pending.is_over = true;
                    pending.problem = Some(problem);
                }
            }
        }
        self.pending = Some(pending);
    }

    fn go_on(&mut self, pending: &mut Pending) -> Result<Option<Returned>, Problem> {
        let outcome = match pending.waiting.clone() {
            Waiting::Accept { listener } => self.accept(listener, &pending.spec)?,
            Waiting::Connect { socket } => self.connected(socket),
            Waiting::Read { socket, most, peek } => self.read(socket, most, peek, true)?,
            Waiting::Write {
                socket,
                left,
                written,
                tail,
            } => self.write_on(socket, left, written, tail)?,
            Waiting::Poll { entries, until } => self.poll_on(entries, until)?,
        };
        match outcome {
            Outcome::Returned(returned) => Ok(Some(returned)),
            Outcome::Blocks(waiting) => {
                pending.waiting = waiting;
                Ok(None)
            }
        }
    }

    /// Checks a call's result against the script.
    fn check(&self, spec: &CallSpec, returned: Returned) -> Result<(), Problem> {
        let show = |returned: &Returned| match returned {
            Returned::Value(n) => n.to_string(),
            Returned::Error(name) => format!("-1 {name}"),
        };
        if spec.result == Expression::Ellipsis {
            return Ok(());
        }
        let expected = number(&spec.result)?;
        let same = match returned {
            Returned::Value(n) => n == expected && spec.errno.is_none(),
            Returned::Error(name) => {
                expected == -1 && spec.errno.as_deref().is_none_or(|errno| errno == name)
            }
        };
        if same {
            return Ok(());
        }
        let errno = spec.errno.as_deref().unwrap_or_default();
        let expected = format!("{} = {expected} {errno}", spec.name);
        Err(Problem::wrong(expected.trim(), show(&returned)))
    }

    fn start(&mut self, spec: &CallSpec) -> Result<Outcome, Problem> {
        let arguments = &spec.arguments[..];
        match (spec.name.as_str(), arguments) {
            ("socket", [_, kind, _]) => {
                if word(kind) != "SOCK_STREAM" {
                    return Err(Problem::missing(format!("a socket of {kind:?}")));
                }
                self.socket(spec)
            }
            ("bind", [fd, ..]) => {
                self.socket_of(fd)?;
                value(0)
            }
            ("listen", [fd, backlog]) => self.listen(number(fd)?, number(backlog)?),
            ("accept", [fd, _, _]) => self.accept(number(fd)?, spec),
            ("connect", [fd, _, _]) => self.connect(number(fd)?),
            ("close", [fd]) => self.close(number(fd)?),
            ("shutdown", [fd, how]) => self.shutdown(number(fd)?, number(how)?),
            ("fcntl", [fd, command, rest @ ..]) => {
                let (fd, command) = (number(fd)?, word(command));
                self.fcntl(fd, command, rest)
            }
            ("ioctl", [fd, request, answer]) => self.ioctl(number(fd)?, word(request), answer),
            ("setsockopt", [fd, _, name, new, _]) => self.setsockopt(number(fd)?, word(name), new),
            ("getsockopt", [fd, _, name, old, _]) => self.getsockopt(number(fd)?, word(name), old),
            ("read" | "write" | "send" | "recv" | "sendto" | "recvfrom", _)
            | ("writev" | "readv" | "sendmsg" | "recvmsg", _) => self.transfer(spec),
            ("poll", [entries, _, timeout]) => self.poll(entries, number(timeout)?),
            ("epoll_create" | "epoll_create1", [_]) => self.epoll_create(spec),
            ("epoll_ctl", [epoll, command, fd, rest @ ..]) => {
                let (epoll, fd) = (number(epoll)?, number(fd)?);
                self.epoll_ctl(epoll, word(command), fd, rest)
            }
            ("epoll_wait", [epoll, event, _, timeout]) => {
                self.epoll_wait(number(epoll)?, event, number(timeout)?)
            }
            (name, _) => Err(Problem::missing(format!("{name}()"))),
        }
    }

    fn socket_of(&self, fd: &Expression) -> Result<i64, Problem> {
        let fd = number(fd)?;
        self.known(fd)?;
        Ok(fd)
    }

    /// Checks that a number is a socket; otherwise the script is wrong.
    fn known(&self, fd: i64) -> Result<(), Problem> {
        if self.sockets.table.contains_key(&fd) {
            return Ok(());
        }
        Err(Problem::wrong(format!("socket {fd}"), "no such socket"))
    }

    /// Returns the connection of a socket.
    fn stream(&self, fd: i64) -> Option<usize> {
        self.sockets.table.get(&fd)?.conversation()
    }

    /// Returns the number that the script assigns to a new socket.
    fn new_number(&self, spec: &CallSpec) -> i64 {
        let wanted = number(&spec.result).unwrap_or(-1);
        let taken =
            |n: &i64| self.sockets.table.contains_key(n) || self.sockets.polls.contains_key(n);
        if wanted >= 0 && !taken(&wanted) {
            return wanted;
        }
        (3..).find(|n| !taken(n)).unwrap_or(3)
    }

    fn fcntl(&mut self, fd: i64, command: &str, rest: &[Expression]) -> Result<Outcome, Problem> {
        use super::constants::{O_NONBLOCK, O_RDWR};
        self.known(fd)?;
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        match (command, rest) {
            ("F_GETFL", _) => {
                let nonblocking = if socket.nonblocking { O_NONBLOCK } else { 0 };
                value(O_RDWR | nonblocking)
            }
            ("F_SETFL", [flags]) => {
                socket.nonblocking = number(flags)? & O_NONBLOCK != 0;
                value(0)
            }
            _ => Err(Problem::missing(format!("fcntl {command}"))),
        }
    }

    fn ioctl(&mut self, fd: i64, request: &str, answer: &Expression) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let Some(conversation) = self.stream(fd) else {
            return error("EINVAL");
        };
        let connection = self.host.connection(conversation);
        let n = match request {
            "SIOCINQ" | "FIONREAD" => connection.readable(),
            "SIOCOUTQ" | "TIOCOUTQ" => {
                connection.written_offset() - connection.acknowledged_offset()
            }
            "SIOCOUTQNSD" => connection.written_offset() - connection.sent_offset(),
            _ => return Err(Problem::missing(format!("ioctl {request}"))),
        };
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        same(request, listed(answer)?, n)?;
        value(0)
    }
}

/// Whether the socket is listening.
fn is_listening(kind: &Kind) -> bool {
    matches!(kind, Kind::Listening { .. })
}
