//! Outcomes of calls.

use bentpipe_types::Time;

use super::Problem;

/// Result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::runner) enum Returned {
    Value(i64),
    Error(&'static str),
}

/// State of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Returned(Returned),
    Blocks(Waiting),
}

/// A call that returned a number.
pub(super) const fn value(n: i64) -> Result<Outcome, Problem> {
    Ok(Outcome::Returned(Returned::Value(n)))
}

/// A call that returned an error.
pub(super) const fn error(name: &'static str) -> Result<Outcome, Problem> {
    Ok(Outcome::Returned(Returned::Error(name)))
}

/// Event for which a blocked call waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    Accept {
        listener: i64,
    },
    Connect {
        socket: i64,
    },
    Read {
        socket: i64,
        most: u64,
        peek: bool,
    },
    Write {
        socket: i64,
        left: u64,
        written: u64,
        tail: Tail,
    },
    Poll {
        entries: Vec<Polled>,
        until: Time,
    },
}

/// One entry of a poll.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Polled {
    pub(super) socket: i64,
    pub(super) events: i64,
    pub(super) expected: i64,
}

/// Treatment of the end of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    /// It is pushed.
    Push,
    /// MSG_MORE.
    More,
    /// MSG_EOR.
    Record,
}

/// Checks a value that a call stores against the script.
pub(super) fn same(what: &str, expected: i64, got: i64) -> Result<(), Problem> {
    if expected == got {
        return Ok(());
    }
    Err(Problem::wrong(
        format!("{what} [{expected}]"),
        format!("[{got}]"),
    ))
}
