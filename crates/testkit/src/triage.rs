//! Known reasons why public scripts do not pass.

use std::fmt;

/// Origin of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// An error here.
    OurFault,
    /// Behaviour of Linux that no RFC requires.
    LinuxChoice,
    /// Outside the scope of this TCP.
    NotApplicable,
    /// A TCP feature that is not implemented.
    NotImplemented,
    /// The script, or the kernel for which it was written.
    Script,
    /// Not examined.
    Unknown,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 6] = [
        Self::OurFault,
        Self::LinuxChoice,
        Self::NotApplicable,
        Self::NotImplemented,
        Self::Script,
        Self::Unknown,
    ];
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OurFault => "our bug",
            Self::LinuxChoice => "Linux's own choice",
            Self::NotApplicable => "not applicable",
            Self::NotImplemented => "not implemented",
            Self::Script => "the script's own",
            Self::Unknown => "not triaged",
        })
    }
}

/// Reasons by part of the path; the first match applies.
const KNOWN: &[(&str, Cause, &str)] = &[
    (
        "fallback-exp-opt",
        Cause::LinuxChoice,
        "where a server ignores a cookie request, the next one has the experiment's option number",
    ),
    (
        "ts_recent/invalid_ack",
        Cause::Script,
        "before Linux 6.18.38 an acknowledgment of what was never sent had no answer",
    ),
    (
        "client-ack-dropped-then-recovery",
        Cause::LinuxChoice,
        "the window doesn't close by what is unread, because the buffer is larger than it",
    ),
    (
        "/zerocopy/",
        Cause::NotApplicable,
        "when the kernel lets go of a buffer that it sends without copying",
    ),
    (
        "/timestamping/",
        Cause::NotApplicable,
        "the kernel's time stamps of buffers on their way to the device",
    ),
    (
        "sendmsg-empty-iov",
        Cause::NotApplicable,
        "a socket with the option SO_ZEROCOPY",
    ),
    (
        "/epoll/epoll_out",
        Cause::Script,
        "Linux 6.18 lets 20 segments leave at the first acknowledgment, not 16",
    ),
    (
        "notsent-lowat-default",
        Cause::Script,
        "Linux 6.18 lets 20 segments leave at the first acknowledgment, not 16, and wakes the writer with it",
    ),
    (
        "gro-mss-option",
        Cause::NotApplicable,
        "the receiver's offload: ten segments that come in as one",
    ),
    (
        "/splice/",
        Cause::NotApplicable,
        "splice() around an urgent byte; urgent data is data here (RFC 6093)",
    ),
    (
        "/md5/",
        Cause::NotApplicable,
        "the kernel's table of sockets",
    ),
    (
        "user-timeout-probe",
        Cause::NotApplicable,
        "a network device that takes no packets",
    ),
    (
        "cubic-rack-reo-timeout",
        Cause::NotApplicable,
        "a network device that takes no packets",
    ),
    (
        "cubic-bulk-166k",
        Cause::Script,
        "before Linux 6.14 HyStart began its rounds with the first window of 16: slow start ends at 36, not 48",
    ),
    (
        "fr-4pkt-fack-last-mss",
        Cause::Script,
        "it waits 40 ms for a quarter of 100 ms: the ticks of a clock of 100 or 250 Hz",
    ),
    (
        "ioctl/ioctl-siocinq-fin",
        Cause::Script,
        "Linux 6.18 delays it: without a scale its window is narrower than what it offered in a field of any width",
    ),
    (
        "cwnd-moderation-ecn",
        Cause::Script,
        "what acknowledges something new lets a segment more go on the way down: the window is 5 after a mark, not 4",
    ),
    ("/sendfile/", Cause::NotApplicable, "files"),
];

/// Returns why the script at this path does not pass.
#[must_use]
pub fn triage(path: &str) -> (Cause, &'static str) {
    let path = format!("/{path}");
    let known = KNOWN.iter().find(|(part, ..)| path.contains(part));
    known.map_or((Cause::Unknown, ""), |(_, cause, why)| (*cause, *why))
}
