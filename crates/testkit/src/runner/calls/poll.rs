//! poll and epoll.

use bentpipe_types::{Span, Time};

use super::outcome::{Outcome, Polled, Waiting, error, same, value};
use super::{Problem, Runner};
use crate::runner::clock::EVER;
use crate::runner::constants::{EPOLLET, EPOLLONESHOT, POLLERR, POLLHUP, number};
use crate::runner::sockets::Watch;
use crate::script::{CallSpec, Expression};

/// Returns the value of a field.
fn field(fields: &[(Option<String>, Expression)], name: &str) -> Result<Option<i64>, Problem> {
    let found = fields.iter().find(|(n, _)| n.as_deref() == Some(name));
    found.map(|(_, value)| number(value)).transpose()
}

impl Runner {
    pub(super) fn poll(
        &mut self,
        entries: &Expression,
        milliseconds: i64,
    ) -> Result<Outcome, Problem> {
        let Expression::List(entries) = entries else {
            return Err(Problem::missing("poll of no list"));
        };
        let mut polled = Vec::new();
        for entry in entries {
            let Expression::Fields(fields) = entry else {
                return Err(Problem::missing("poll of such an entry"));
            };
            polled.push(Polled {
                socket: field(fields, "fd")?.unwrap_or(-1),
                events: field(fields, "events")?.unwrap_or(0),
                expected: field(fields, "revents")?.unwrap_or(0),
            });
        }
        self.poll_on(polled, self.host.world.now + timeout(milliseconds))
    }

    pub(super) fn poll_on(
        &mut self,
        entries: Vec<Polled>,
        until: Time,
    ) -> Result<Outcome, Problem> {
        let mut ready = 0;
        let found: Vec<i64> = entries
            .iter()
            .map(|entry| {
                let shown = entry.events | POLLERR | POLLHUP | 0x20;
                self.sockets.poll(&mut self.host, entry.socket) & shown
            })
            .inspect(|&found| ready += i64::from(found != 0))
            .collect();
        if ready == 0 && self.host.world.now < until {
            return Ok(Outcome::Blocks(Waiting::Poll { entries, until }));
        }
        for (entry, found) in entries.iter().zip(found) {
            if entry.expected != found {
                return Err(Problem::wrong(
                    format!("poll of {} revents {:#x}", entry.socket, entry.expected),
                    format!("{found:#x}"),
                ));
            }
        }
        value(ready)
    }

    pub(super) fn epoll_create(&mut self, spec: &CallSpec) -> Result<Outcome, Problem> {
        let number = self.new_number(spec);
        self.sockets.polls.insert(number, Default::default());
        value(number)
    }

    pub(super) fn epoll_ctl(
        &mut self,
        epoll: i64,
        command: &str,
        fd: i64,
        rest: &[Expression],
    ) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let Some(watches) = self.sockets.polls.get_mut(&epoll) else {
            return error("EBADF");
        };
        if command == "EPOLL_CTL_DEL" {
            return match watches.remove(&fd) {
                Some(_) => value(0),
                None => error("ENOENT"),
            };
        }
        let [Expression::Fields(fields)] = rest else {
            return Err(Problem::missing("epoll_ctl with such an event"));
        };
        let events = field(fields, "events")?.unwrap_or(0);
        let data = ["fd", "ptr", "u32", "u64"];
        let data = data.iter().find_map(|name| field(fields, name).transpose());
        let watch = Watch {
            events,
            data: data.transpose()?.unwrap_or(0),
            edge: events & EPOLLET != 0,
            once: events & EPOLLONESHOT != 0,
            disabled: false,
            armed: true,
        };
        let known = watches.contains_key(&fd);
        match command {
            "EPOLL_CTL_ADD" if known => return error("EEXIST"),
            "EPOLL_CTL_MOD" if !known => return error("ENOENT"),
            "EPOLL_CTL_ADD" | "EPOLL_CTL_MOD" => {}
            _ => return error("EINVAL"),
        }
        watches.insert(fd, watch);
        value(0)
    }

    /// Returns at most one event, as in the public scripts, without waiting.
    pub(super) fn epoll_wait(
        &mut self,
        epoll: i64,
        expected: &Expression,
        milliseconds: i64,
    ) -> Result<Outcome, Problem> {
        let Some(watches) = self.sockets.polls.get(&epoll) else {
            return error("EBADF");
        };
        let found = watches.iter().find_map(|(&fd, watch)| {
            // An edge that was already reported is skipped.
            if watch.disabled || watch.edge && !watch.armed {
                return None;
            }
            let shown = watch.events | POLLERR | POLLHUP;
            let ready = self.sockets.poll(&mut self.host, fd) & shown;
            (ready != 0).then_some((fd, ready, watch.data))
        });
        let Some((fd, ready, data)) = found else {
            if milliseconds != 0 {
                return Err(Problem::missing("epoll_wait that waits"));
            }
            return value(0);
        };
        if let Some(watch) = self
            .sockets
            .polls
            .get_mut(&epoll)
            .and_then(|w| w.get_mut(&fd))
        {
            watch.armed = false;
            watch.disabled = watch.once;
        }
        if let Expression::Fields(fields) = expected {
            let events = field(fields, "events")?.unwrap_or(0);
            same("epoll events", events, ready)?;
            let expected = ["fd", "ptr", "u32", "u64"];
            let expected = expected.iter().find_map(|n| field(fields, n).transpose());
            same("epoll data", expected.transpose()?.unwrap_or(0), data)?;
        }
        value(1)
    }
}

/// Returns the timeout of a poll.
fn timeout(milliseconds: i64) -> Span {
    match u64::try_from(milliseconds) {
        Ok(milliseconds) => Span::from_millis(milliseconds.min(10_000_000)),
        Err(_) => EVER,
    }
}
