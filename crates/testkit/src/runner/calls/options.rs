//! setsockopt and getsockopt.

use bentpipe_types::Span;

use super::{Outcome, Problem, Runner, error, same, value};
use crate::runner::constants::{listed, number};
use crate::runner::setup::low_water;
use crate::script::Expression;

impl Runner {
    pub(super) fn setsockopt(
        &mut self,
        fd: i64,
        name: &str,
        new: &Expression,
    ) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let conversation = self.stream(fd);
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let n = match (name, new) {
            ("TCP_FASTOPEN_KEY", Expression::Text(text)) => {
                let key = <[u8; 16]>::try_from(unescaped(text));
                let Ok(key) = key else {
                    return error("EINVAL");
                };
                socket.options.fast_open_key = Some(key);
                self.set_policy(fd);
                return value(0);
            }
            ("SO_LINGER", Expression::Fields(fields)) => {
                let field = |wanted: &str| {
                    let found = fields.iter().find(|(n, _)| n.as_deref() == Some(wanted));
                    found.map_or(Ok(0), |(_, value)| number(value))
                };
                socket.options.linger = (field("onoff")? != 0).then_some(field("linger")?);
                return value(0);
            }
            _ => listed(new)?,
        };
        let options = &mut socket.options;
        options.known.insert(name.to_owned(), n);
        let positive = u64::try_from(n).unwrap_or(0);
        match name {
            // No effect on a single TCP.
            "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_MARK" | "SO_PRIORITY" | "IP_TOS"
            | "IP_FREEBIND" | "IP_MTU_DISCOVER" | "TCP_QUICKACK" => {}
            "SO_SNDBUF" => {
                options.send_buffer = Some(2 * positive.clamp(2304, 1 << 31));
                let bytes = options.send_buffer.unwrap_or(0);
                if let Some(conversation) = conversation {
                    self.host
                        .with(conversation, |c, _| c.set_send_memory(bytes));
                }
            }
            "SO_RCVBUF" => options.receive_buffer = Some(2 * positive.clamp(1152, 1 << 31)),
            "TCP_NODELAY" => {
                options.no_delay = n != 0;
                if let Some(conversation) = conversation {
                    self.host
                        .with(conversation, |c, cx| c.set_nagle(n == 0, cx));
                }
            }
            "TCP_CORK" => {
                if let Some(conversation) = conversation {
                    self.host.with(conversation, |c, cx| c.set_cork(n != 0, cx));
                }
            }
            "TCP_MAXSEG" => {
                let Ok(segment) = u16::try_from(n) else {
                    return error("EINVAL");
                };
                if segment < 88 {
                    return error("EINVAL"); // Linux's TCP_MIN_MSS
                }
                options.maximum_segment = Some(segment);
                let config = self.configuration(fd);
                self.host
                    .set_listener(fd, |listener| listener.config = config);
            }
            "TCP_USER_TIMEOUT" => {
                let timeout = (n > 0).then(|| Span::from_millis(positive));
                options.user_timeout = timeout;
                if let Some(conversation) = conversation {
                    self.host
                        .with(conversation, |c, _| c.set_user_timeout(timeout));
                }
            }
            "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
                if n < i64::from(name != "SO_KEEPALIVE") || n > 32_767 {
                    return error("EINVAL"); // Linux's MAX_TCP_KEEPIDLE and its like
                }
                let span = Some(Span::from_secs(positive));
                match name {
                    "SO_KEEPALIVE" => options.keep_alive_enabled = n != 0,
                    "TCP_KEEPIDLE" => options.keep_idle = span,
                    "TCP_KEEPINTVL" => options.keep_interval = span,
                    _ => options.keep_probes = Some(positive as u32),
                }
                let keep_alive = self.setup.keep_alive(options);
                if let Some(conversation) = conversation {
                    self.host
                        .with(conversation, |c, cx| c.set_keep_alive(keep_alive, cx));
                }
            }
            "TCP_FASTOPEN" => {
                options.fast_open_queue = Some(n);
                self.set_policy(fd);
            }
            "TCP_FASTOPEN_CONNECT" if self.setup.fast_open.bits & 1 == 0 => {
                return error("EOPNOTSUPP");
            }
            "TCP_FASTOPEN_CONNECT" => options.fast_open_connect = n != 0,
            "TCP_SYNCNT" => {
                let times = positive.min(255) as u32;
                options.syn_retries = Some(times);
                if let Some(conversation) = conversation {
                    self.host.with(conversation, |c, _| {
                        c.set_maximum_syn_retransmissions(times)
                    });
                }
            }
            "TCP_NOTSENT_LOWAT" => {
                options.unsent_low_water = (n != 0).then_some(positive);
                let bytes = match options.unsent_low_water {
                    Some(bytes) => low_water(bytes),
                    None => self.setup.config.unsent_low_water,
                };
                if let Some(conversation) = conversation {
                    self.host
                        .with(conversation, |c, _| c.set_unsent_low_water(bytes));
                }
            }
            "TCP_INQ" => options.reports_unread = n != 0,
            _ => return Err(Problem::missing(name)),
        }
        value(0)
    }

    pub(super) fn getsockopt(
        &mut self,
        fd: i64,
        name: &str,
        old: &Expression,
    ) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let conversation = self.stream(fd);
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let options = &socket.options;
        let segment = conversation.map(|index| {
            let connection = self.host.connection(index);
            i64::from(connection.segment_size())
        });
        let n = match name {
            "SO_ERROR" => {
                let pending = socket.error.take();
                let expected = match old {
                    Expression::List(all) if all.len() == 1 => &all[0],
                    other => other,
                };
                let got = pending.unwrap_or("0");
                let wanted = match expected {
                    Expression::Integer(n) => n.to_string(),
                    Expression::Word(word) => word.clone(),
                    other => format!("{other:?}"),
                };
                if wanted != got {
                    return Err(Problem::wrong(format!("SO_ERROR [{wanted}]"), got));
                }
                return value(0);
            }
            "SO_SNDBUF" => {
                let default = &self.setup.config;
                let default = (default.send_sizes).map_or(default.send_buffer, |s| s.initial);
                options.send_buffer.unwrap_or(default) as i64
            }
            "SO_RCVBUF" => {
                let default = &self.setup.config;
                let default = (default.receive_sizes).map_or(default.receive_buffer, |s| s.initial);
                options.receive_buffer.unwrap_or(default) as i64
            }
            "TCP_MAXSEG" => {
                let set = options.maximum_segment.map(i64::from);
                segment.or(set).unwrap_or(536)
            }
            _ => match options.known.get(name) {
                Some(n) => *n,
                None if name == "TCP_NOTSENT_LOWAT" => 0,
                None => return Err(Problem::missing(format!("getsockopt of {name}"))),
            },
        };
        same(name, listed(old)?, n)?;
        value(0)
    }
}

/// Returns the bytes of a text with escapes like `\xf7`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let digits = rest.strip_prefix("\\x").and_then(|r| r.get(..2));
        if let Some(byte) = digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            bytes.push(byte);
            rest = &rest[4..];
        } else {
            bytes.extend_from_slice(first.to_string().as_bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
    bytes
}
