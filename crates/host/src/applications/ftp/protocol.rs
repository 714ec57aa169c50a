//! Ports of FTP, and lengths of its commands and replies.

use bentpipe_types::Span;

/// Port of the control connection.
pub(in crate::applications) const CONTROL: u16 = 21;
/// Source port of an active server's data connections (RFC 959 section 3.2).
pub(in crate::applications) const ACTIVE_DATA: u16 = 20;
/// Port on which this server listens for passive data connections, which are matched by their
/// source.
pub(in crate::applications) const PASSIVE_DATA: u16 = 2021;

/// Time after which opening a connection is retried when there was no port.
pub(super) const AGAIN: Span = Span::from_secs(1);

// Commands and replies of usual lengths in bytes, line ends included.
pub(super) const GREETING: u64 = 20;
pub(super) const USER: (u64, u64) = (16, 34);
pub(super) const PASS: (u64, u64) = (20, 23);
pub(super) const TYPE: (u64, u64) = (8, 31);
pub(super) const PASV: (u64, u64) = (6, 53);
pub(super) const PORT: (u64, u64) = (30, 51);
pub(super) const TRANSFER: u64 = 15;
/// 150, when the data connection is established, and 226, when everything has arrived.
pub(super) const OPENING: u64 = 70;
pub(super) const COMPLETE: u64 = 24;
pub(super) const QUIT: (u64, u64) = (6, 14);
