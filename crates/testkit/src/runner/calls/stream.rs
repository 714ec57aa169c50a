//! Reading and writing.

use bentpipe_tcp::{ActiveFastOpen, Events, State};

use super::outcome::{Outcome, Tail, Waiting, error, same, value};
use super::{Problem, Runner};
use crate::runner::constants::{
    MSG_DONTWAIT, MSG_EOR, MSG_FASTOPEN, MSG_MORE, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL, number,
    word,
};
use crate::runner::sockets::Kind;
use crate::script::{CallSpec, Expression};

/// Arguments of a read or write.
struct Transfer {
    socket: i64,
    bytes: u64,
    flags: i64,
    /// Whether the buffer is NULL.
    nowhere: bool,
    /// Expected control messages of recvmsg.
    control: Option<Expression>,
}

impl Runner {
    /// Executes read, write and similar calls.
    pub(super) fn transfer(&mut self, spec: &CallSpec) -> Result<Outcome, Problem> {
        let transfer = transfer(spec)?;
        self.known(transfer.socket)?;
        let writes = matches!(
            spec.name.as_str(),
            "write" | "writev" | "send" | "sendto" | "sendmsg"
        );
        let blocks = transfer.flags & MSG_DONTWAIT == 0;
        if !writes {
            let peek = transfer.flags & MSG_PEEK != 0;
            if transfer.nowhere && self.unread(transfer.socket) > 0 {
                return error("EFAULT");
            }
            let outcome = self.read(transfer.socket, transfer.bytes, peek, blocks)?;
            if let Some(control) = &transfer.control
                && let Outcome::Returned(_) = outcome
            {
                self.check_control(transfer.socket, control)?;
            }
            return Ok(outcome);
        }
        let deferred = self
            .sockets
            .table
            .get(&transfer.socket)
            .is_some_and(|s| s.deferred);
        if deferred || transfer.flags & MSG_FASTOPEN != 0 {
            return self.write_fast(spec, &transfer, deferred);
        }
        if transfer.nowhere && transfer.bytes > 0 {
            return match self.write_error(transfer.socket) {
                Some(name) => error(name),
                None => error("EFAULT"),
            };
        }
        self.write(transfer.socket, transfer.bytes, transfer.flags)
    }

    /// Executes a write that connects.
    fn write_fast(
        &mut self,
        spec: &CallSpec,
        transfer: &Transfer,
        deferred: bool,
    ) -> Result<Outcome, Problem> {
        if spec.arguments.iter().any(|a| word(a) == "AF_UNSPEC") {
            return error("EOPNOTSUPP");
        }
        let Some(fast) = self.fast_open_option() else {
            return error("EOPNOTSUPP");
        };
        let fd = transfer.socket;
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let nonblocking = socket.nonblocking || transfer.flags & MSG_DONTWAIT != 0;
        if let Some(name) = socket.error.take() {
            return error(name);
        }
        if let Kind::Stream(conversation) = socket.kind {
            let history = self.host.conversations[conversation].history;
            return if history.has(Events::ESTABLISHED) {
                self.write(fd, transfer.bytes, transfer.flags & !MSG_FASTOPEN)
            } else {
                error("EALREADY")
            };
        }
        let segment = socket.options.maximum_segment.unwrap_or(u16::MAX);
        if transfer.nowhere && transfer.bytes > 0 && (fast.carries_data || deferred) {
            return error("EFAULT");
        }
        let room = fast.room(segment.min(self.setup.maximum_segment));
        let bytes = if fast.carries_data { transfer.bytes } else { 0 };
        let taken = self.open(
            fd,
            Some(ActiveFastOpen {
                option: fast.option,
                bytes,
                room,
            }),
        )?;
        if nonblocking {
            return if taken > 0 {
                value(taken as i64)
            } else {
                error("EINPROGRESS")
            };
        }
        if transfer.bytes > taken
            && let Some(conversation) = self.stream(fd)
        {
            self.host.with(conversation, |c, _| c.announce_write());
        }
        Ok(Outcome::Blocks(Waiting::Write {
            socket: fd,
            left: transfer.bytes - taken,
            written: taken,
            tail: Tail::Push,
        }))
    }

    fn unread(&self, fd: i64) -> u64 {
        self.stream(fd).map_or(0, |conversation| {
            self.host.connection(conversation).readable()
        })
    }

    pub(super) fn read(
        &mut self,
        fd: i64,
        most: u64,
        peek: bool,
        blocks: bool,
    ) -> Result<Outcome, Problem> {
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let Kind::Stream(conversation) = socket.kind else {
            let deferred = socket.deferred;
            return error(if deferred { "EAGAIN" } else { "ENOTCONN" });
        };
        let connection = self.host.connection(conversation);
        let readable = connection.readable();
        if readable > 0 {
            let bytes = most.min(readable);
            if !peek {
                self.host.with(conversation, |c, cx| c.read(bytes, cx));
            }
            return value(bytes as i64);
        }
        if let Some(name) = socket.error.take() {
            return error(name);
        }
        let history = self.host.conversations[conversation].history;
        let over = connection.state() == State::Closed;
        if history.has(Events::PEER_CLOSED) || over || socket.read_shut_down || most == 0 {
            return value(0);
        }
        if socket.nonblocking || !blocks {
            return error("EAGAIN");
        }
        Ok(Outcome::Blocks(Waiting::Read {
            socket: fd,
            most,
            peek,
        }))
    }

    /// Returns the error that prevents writing.
    fn write_error(&mut self, fd: i64) -> Option<&'static str> {
        let socket = self.sockets.table.get_mut(&fd)?;
        if let Some(name) = socket.error.take() {
            return Some(name);
        }
        let Kind::Stream(conversation) = socket.kind else {
            return Some("EPIPE");
        };
        let state = self.host.connection(conversation).state();
        (socket.write_shut_down || state == State::Closed).then_some("EPIPE")
    }

    fn write(&mut self, fd: i64, bytes: u64, flags: i64) -> Result<Outcome, Problem> {
        if let Some(name) = self.write_error(fd) {
            return error(name);
        }
        let tail = if flags & MSG_EOR != 0 {
            Tail::Record
        } else if flags & MSG_MORE != 0 {
            Tail::More
        } else {
            Tail::Push
        };
        let nonblocking =
            self.sockets.table.get(&fd).is_some_and(|s| s.nonblocking) || flags & MSG_DONTWAIT != 0;
        let Some(conversation) = self.stream(fd) else {
            return error("EPIPE");
        };
        if self.is_opening(conversation) && nonblocking {
            return error("EAGAIN");
        }
        match self.write_on(fd, bytes, 0, tail)? {
            Outcome::Blocks(Waiting::Write { written, .. }) if nonblocking => {
                self.host
                    .with(conversation, |c, _| c.note_nonblocking_write());
                if written > 0 {
                    value(written as i64)
                } else {
                    error("EAGAIN")
                }
            }
            other => Ok(other),
        }
    }

    /// Whether the handshake is incomplete and Fast Open is not used.
    fn is_opening(&self, index: usize) -> bool {
        let conversation = &self.host.conversations[index];
        let state = self.host.connection(index).state();
        matches!(state, State::SynSent | State::SynReceived)
            && !conversation.history.has(Events::ESTABLISHED)
    }

    /// Writes as much as there is room for; the rest waits.
    pub(super) fn write_on(
        &mut self,
        fd: i64,
        left: u64,
        written: u64,
        tail: Tail,
    ) -> Result<Outcome, Problem> {
        let waits = |left, written| {
            Ok(Outcome::Blocks(Waiting::Write {
                socket: fd,
                left,
                written,
                tail,
            }))
        };
        if written > 0
            && let Some(name) = self.write_error(fd)
        {
            let established = self.stream(fd).is_some_and(|conversation| {
                let history = self.host.conversations[conversation].history;
                history.has(Events::ESTABLISHED)
            });
            if !established {
                return error(name);
            }
            // The written part counts; the error is reported by the next call.
            if let Some(socket) = self.sockets.table.get_mut(&fd) {
                socket.error = Some(name);
            }
            return value(written as i64);
        }
        let Some(conversation) = self.stream(fd) else {
            return error("EPIPE");
        };
        if self.is_opening(conversation) {
            return waits(left, written);
        }
        let taken = self.host.with(conversation, |c, cx| match tail {
            Tail::Push => c.write(left, cx),
            Tail::More => c.write_more(left, cx),
            Tail::Record => c.write_record(left, cx),
        });
        let (left, written) = (left - taken, written + taken);
        if left == 0 {
            return value(written as i64);
        }
        waits(left, written)
    }

    /// Checks recvmsg's control message TCP_CM_INQ.
    fn check_control(&self, fd: i64, control: &Expression) -> Result<(), Problem> {
        let Expression::List(messages) = control else {
            return Ok(());
        };
        for message in messages {
            let Expression::Fields(fields) = message else {
                return Err(Problem::missing("a control message like that"));
            };
            let field = |name: &str| {
                let found = fields.iter().find(|(n, _)| n.as_deref() == Some(name));
                found.map(|(_, value)| value)
            };
            let is_unread =
                field("cmsg_type").is_some_and(|v| *v == Expression::Word("TCP_CM_INQ".to_owned()));
            let Some(data) = field("cmsg_data").filter(|_| is_unread) else {
                return Err(Problem::missing("control messages but TCP_CM_INQ"));
            };
            let finished = self.stream(fd).is_some_and(|conversation| {
                self.host.conversations[conversation]
                    .history
                    .has(Events::PEER_CLOSED)
            });
            // Linux's tcp_inq_hint: the end of the stream counts as one byte.
            let unread = self.unread(fd).max(u64::from(finished));
            same("TCP_CM_INQ", number(data)?, unread as i64)?;
        }
        Ok(())
    }
}

/// Parses the arguments of a read or write.
fn transfer(spec: &CallSpec) -> Result<Transfer, Problem> {
    let wrong = || Problem::missing(format!("{} with such arguments", spec.name));
    let length =
        |e: &Expression| -> Result<u64, Problem> { u64::try_from(number(e)?).map_err(|_| wrong()) };
    let is_null = |e: &Expression| *e == Expression::Word("NULL".to_owned());
    let mut control = None;
    let (socket, buffer, bytes, flags) = match (spec.name.as_str(), &spec.arguments[..]) {
        ("read" | "write", [fd, buffer, bytes]) => (fd, Some(buffer), length(bytes)?, 0),
        ("send" | "recv", [fd, buffer, bytes, flags])
        | ("sendto" | "recvfrom", [fd, buffer, bytes, flags, _, _]) => {
            (fd, Some(buffer), length(bytes)?, number(flags)?)
        }
        ("writev" | "readv", [fd, Expression::List(vectors), _]) => {
            (fd, None, vector_length(vectors).ok_or_else(wrong)?, 0)
        }
        ("sendmsg" | "recvmsg", [fd, Expression::Fields(fields), flags]) => {
            let vectors = fields
                .iter()
                .find(|(name, _)| name.as_deref() == Some("msg_iov"));
            let Some((_, Expression::List(vectors))) = vectors else {
                return Err(wrong());
            };
            let found = fields
                .iter()
                .find(|(name, _)| name.as_deref() == Some("msg_control"));
            control = found.map(|(_, value)| value.clone());
            let bytes = vector_length(vectors).ok_or_else(wrong)?;
            (fd, None, bytes, number(flags)?)
        }
        _ => return Err(wrong()),
    };
    let known =
        MSG_FASTOPEN | MSG_DONTWAIT | MSG_MORE | MSG_EOR | MSG_NOSIGNAL | MSG_PEEK | MSG_WAITALL;
    if flags & !known != 0 {
        return Err(Problem::missing(format!(
            "the flags {flags:#x} of {}",
            spec.name
        )));
    }
    Ok(Transfer {
        socket: number(socket)?,
        bytes,
        flags,
        nowhere: buffer.is_some_and(is_null),
        control,
    })
}

/// Returns the total length of `{..., n}`.
fn vector_length(vectors: &[Expression]) -> Option<u64> {
    vectors.iter().try_fold(0_u64, |sum, vector| match vector {
        Expression::Fields(fields) => match &fields[..] {
            [_, (None, Expression::Integer(n))] => sum.checked_add(u64::try_from(*n).ok()?),
            _ => None,
        },
        _ => None,
    })
}
