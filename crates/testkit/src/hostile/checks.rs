//! Invariants of a connection, checked after every event.

use bentpipe_tcp::{Connection, State};
use bentpipe_types::{Span, Time};

use super::settings::MAXIMUM_RTO;

/// Larger than any window: MAXIMUM_WINDOW of the window rules is below it.
const FINITE: u64 = 1 << 50;

/// Longest time without a deadline while there is data to send: the longest retransmission timeout
/// and the longest pacing pause.
const LONGEST_SLEEP: Span = Span::from_nanos(MAXIMUM_RTO.as_nanos() + 2_000_000_000);

/// Whether the connection still expects something from its peer or has unsent data.
pub(super) fn has_pending_work(tcp: &Connection) -> bool {
    match tcp.state() {
        State::Closed | State::TimeWait | State::FinWait2 => false,
        State::SynSent | State::SynReceived | State::FinWait1 | State::Closing | State::LastAck => {
            true
        }
        State::Established | State::CloseWait => tcp.acknowledged_offset() < tcp.written_offset(),
    }
}

/// Returns the first violated invariant. At most `most` bytes may be unread.
pub(super) fn check(tcp: &Connection, most: u64, now: Time) -> Result<(), String> {
    check_stream(tcp)?;
    check_state(tcp, most, now)
}

/// Checks that all data were accepted at the offset at which they were sent.
pub(super) fn check_stream(tcp: &Connection) -> Result<(), String> {
    if tcp.statistics().payload_mismatches > 0 {
        return Err("payload that is not what its sequence number says".to_owned());
    }
    Ok(())
}

/// Checks all invariants except the stream's.
pub(super) fn check_state(tcp: &Connection, most: u64, now: Time) -> Result<(), String> {
    let window = tcp.congestion_window();
    if !(u64::from(tcp.segment_size())..FINITE).contains(&window) {
        return Err(format!("a congestion window of {window}"));
    }
    if let Some(rate) = tcp.pacing_rate()
        && rate.bits_per_second() < 8
    {
        return Err(format!("a pacing rate of {rate:?}"));
    }
    if tcp.in_flight() > FINITE || tcp.sending_window() > FINITE {
        return Err(format!("{} bytes in flight", tcp.in_flight()));
    }
    let (acknowledged, sent) = (tcp.acknowledged_offset(), tcp.sent_offset());
    if acknowledged > sent || sent > tcp.written_offset() {
        return Err(format!("{acknowledged} acknowledged, {sent} sent"));
    }
    // The window is never taken back, so one byte above the buffer size may have to be accepted.
    if tcp.readable() > most {
        return Err(format!("{} bytes wait to be read", tcp.readable()));
    }
    if has_pending_work(tcp) {
        match tcp.next_deadline() {
            None => return Err("asleep for ever with something to send".to_owned()),
            Some(at) if at > now + LONGEST_SLEEP => {
                return Err(format!("asleep until {at:?} with something to send"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
