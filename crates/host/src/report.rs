//! What applications have to tell of themselves.

use bentpipe_tcp::RttStatistics;
use bentpipe_types::{Span, Time};

/// What an application has to tell of itself when it is asked for results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// When it had done all that it set out to do; `None` of one that has not, or never will have.
    pub finished: Option<Time>,
    /// Answers to requests.
    pub responses: Option<Responses>,
    /// Pages loaded.
    pub pages: Option<Pages>,
    /// Messages of a source of packets.
    pub messages: Option<Messages>,
}

/// Answers to requests.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// Requests made.
    pub asked: u64,
    /// From a request's first byte written to its answer's last byte read, in order.
    pub times: Vec<Span>,
}

/// A page that was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// When navigation started.
    pub start: Time,
    /// From there to the first byte of the document: TTFB.
    pub first_byte: Span,
    /// From there to the last byte of the last object: page load time.
    pub load: Span,
    /// Objects, the document among them.
    pub objects: u32,
    /// Bytes of them all.
    pub bytes: u64,
}

/// Pages.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Navigations begun.
    pub begun: u64,
    /// Those that were completed, in order.
    pub loaded: Vec<Page>,
}

/// Messages of a source of packets.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Sent, or written.
    pub sent: u64,
    /// Received whole.
    pub received: u64,
    /// Bytes received.
    pub bytes: u64,
    /// From sent to received whole.
    pub delays: RttStatistics,
}

impl Report {
    /// What both ends of a flow tell, as one.
    #[must_use]
    pub fn of_both(opener: Self, server: Self) -> Self {
        let messages = match (opener.messages, server.messages) {
            (Some(sender), Some(receiver)) => Some(Messages {
                sent: sender.sent.max(receiver.sent),
                ..receiver
            }),
            (one, other) => one.or(other),
        };
        Self {
            finished: opener.finished.or(server.finished),
            responses: opener.responses.or(server.responses),
            pages: opener.pages.or(server.pages),
            messages,
        }
    }
}
