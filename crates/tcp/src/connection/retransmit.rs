//! Retransmissions and tail loss probes.

use bentpipe_types::Ctx;

use super::specialization::General;
use super::timers::Purpose;
use super::{Connection, Sender};
use crate::recovery::{LossRecovery, Retransmission};

/// Result of a series of retransmissions.
pub(super) struct RetransmitResult {
    /// Bytes that the pacer still allows.
    pub(super) allowance: u64,
    /// At least one segment was retransmitted.
    pub(super) sent: bool,
    /// The pacer held back further retransmissions.
    pub(super) paced: bool,
}

/// Segments retransmitted together as one buffer, as in Linux.
#[derive(Clone, Copy, Debug, Default)]
struct RetransmitBuffer {
    /// Segments of the buffer that have not been sent.
    left: u64,
    several: bool,
}

impl Connection {
    /// Retransmits lost segments as far as the windows allow.
    #[inline(never)]
    pub(super) fn retransmit_lost(
        &mut self,
        window: u64,
        allowance: u64,
        cx: &mut Ctx<'_>,
    ) -> RetransmitResult {
        let segment = u64::from(self.sender.negotiated.segment);
        let mut left = RetransmitResult {
            allowance,
            sent: false,
            paced: false,
        };
        let mut buffer = RetransmitBuffer::default();
        let in_buffers = self.quirks().sending.sends_in_bursts
            && self
                .sender
                .path_mtu
                .is_lowered(self.sender.negotiated.segment);
        // RFC 6675 section 5, step C: while cwnd - pipe >= 1 SMSS, as NextSeg () selects.
        // RFC 8985 section 9.3: lost segments too are retransmitted only as the window allows.
        while (self.sender.recovery).wants_retransmit(&self.sender.scoreboard)
            && let Some(again) = self
                .sender
                .recovery
                .next_retransmit(&self.sender.send.sequence, &mut self.sender.scoreboard)
            && (again.regardless_of_window || window >= segment + self.in_flight())
            && self.sender.peer_window_admits(&again)
        {
            if left.allowance < segment {
                left.paced = true;
                break;
            }
            if self.sender.split_if_too_long(&again) {
                continue;
            }
            let ends = in_buffers && self.ends_buffer(&mut buffer, again.position, window);
            left.allowance -= self.retransmit(again, ends, cx);
            left.sent = true;
            if !in_buffers && self.sender.scoreboard.has_lost_to_send() {
                left.allowance -= self.retransmit_equal_segments(window, left.allowance, cx);
            }
        }
        if left.sent {
            self.sender.scoreboard.cut_after_last();
        }
        left
    }

    /// Retransmits the first outstanding segment, regardless of the windows.
    pub(super) fn retransmit_first(&mut self, cx: &mut Ctx<'_>) {
        let first = (self.sender.recovery)
            .next_retransmit(&self.sender.send.sequence, &mut self.sender.scoreboard);
        if let Some(again) = first
            && !self.sender.split_if_too_long(&again)
        {
            self.retransmit_one(again, cx);
            self.sender.scoreboard.cut_after_last();
        }
    }

    /// Like [`retransmit`](Self::retransmit), not inlined, for rare cases.
    #[inline(never)]
    fn retransmit_one(&mut self, again: Retransmission, cx: &mut Ctx<'_>) -> u64 {
        self.retransmit(again, false, cx)
    }

    /// Whether the segment at `position` is the last of a retransmitted buffer. After a reduction
    /// of the path MTU, Linux retransmits the parts of a buffer together, with PSH on the last
    /// (tcp_xmit_retransmit_queue). Otherwise this has no visible effect, because retransmissions
    /// are full segments.
    fn ends_buffer(&mut self, buffer: &mut RetransmitBuffer, position: u64, window: u64) -> bool {
        if buffer.left == 0 {
            let segment = u64::from(self.sender.negotiated.segment.max(1));
            let room = window.saturating_sub(self.in_flight()) / segment;
            let most = self.sender.segments_at_once(segment).min(room.max(1));
            buffer.left = self.sender.scoreboard.begin_buffer(position, most);
            buffer.several = buffer.left > 1;
        }
        buffer.left -= 1;
        buffer.left == 0 && buffer.several
    }

    /// Retransmits a segment and returns the bytes sent. `ends_buffer`: it is the last of several
    /// segments sent together.
    #[inline(always)]
    fn retransmit(
        &mut self,
        mut again: Retransmission,
        ends_buffer: bool,
        cx: &mut Ctx<'_>,
    ) -> u64 {
        if !self.sender.cut_for_window(&mut again) {
            self.sender.collapse(&mut again);
        }
        let send = &self.sender.send;
        let sent = send.sequence.highest.min(send.end);
        let limit = again.length.unwrap_or_else(|| self.payload_limit());
        let length = sent.saturating_sub(again.position).min(u64::from(limit));
        // A short segment may have ended a write (tcp_mark_push), or was cut for a small window
        // (tcp_write_wakeup).
        let short = length > 0 && length < u64::from(self.sender.negotiated.segment);
        self.sender.send.ends_burst = ends_buffer
            || short
                && self.quirks().sending.sends_in_bursts
                && self.sender.scoreboard.is_pushed(again.position + length);
        let send = &self.sender.send;
        if again.position + length < send.end {
            self.send_range::<General, true>(again.position, length as u32, cx);
        } else if send.fin && self.goes_without_fin(&again, length) {
            self.sender.send.fin = false;
            self.send_segment(again.position, length as u32, cx);
            self.sender.send.fin = true;
        } else {
            self.send_segment(again.position, length as u32, cx);
        }
        self.sender.send.ends_burst = false;
        self.sender
            .recovery
            .on_retransmitted(again.position, cx.now, &mut self.sender.scoreboard);
        if again.restarts_timer && again.position == self.sender.send.sequence.unacknowledged {
            // tcp_xmit_retransmit_queue in Linux: a retransmission of the first segment restarts
            // the timer, since before an acknowledgment of it the timeout has no meaning. BSD and
            // ns-2 do so for a fast retransmission. RFC 6298 section 5 does not mention it;
            // RFC 6675 section 6 allows it. Otherwise a timeout counted from the last
            // acknowledgment may retransmit a segment a second time at once.
            let at = self.sender.timeout_from(cx.now);
            self.sender.timers.set(Purpose::Retransmit, at);
        }
        length
    }

    /// Whether the FIN that follows the retransmitted data is not sent with it, because it left
    /// later or was never sent.
    #[inline(never)]
    fn goes_without_fin(&self, again: &Retransmission, length: u64) -> bool {
        let apart = again
            .length
            .is_some_and(|segment| u64::from(segment) <= length && length > 0);
        apart && self.quirks().sending.collapses_retransmissions
    }

    /// RFC 6675 section 4: NextSeg rules 3 and 4, used when the window has room and nothing is new.
    /// Returns the bytes sent, and whether the pacer stopped it.
    pub(super) fn transmit_suspects(
        &mut self,
        window: u64,
        allowance: u64,
        cx: &mut Ctx<'_>,
    ) -> (u64, bool) {
        let segment = u64::from(self.sender.negotiated.segment);
        let mut sent = 0;
        while window >= segment + self.in_flight()
            && let Some(suspect) = (self.sender.recovery).next_suspect(&mut self.sender.scoreboard)
        {
            let again = Retransmission {
                position: suspect.position,
                length: Some(suspect.length),
                regardless_of_window: false,
                restarts_timer: true,
            };
            if !self.sender.peer_window_admits(&again) {
                break;
            }
            if allowance < segment + sent {
                return (sent, true);
            }
            if self.sender.split_if_too_long(&again) {
                continue;
            }
            sent += self.retransmit_one(again, cx);
        }
        (sent, false)
    }

    /// RFC 8985 section 7.3: sends a tail loss probe, which is a new segment regardless of the
    /// congestion window, or else the last segment again. Returns false if the peer's window admits
    /// neither.
    pub(super) fn send_loss_probe(&mut self, cx: &mut Ctx<'_>) -> bool {
        let new = (self.next_probe_length()).filter(|_| self.sender.scoreboard.has_room());
        if let Some(length) = new {
            self.send_segment(self.sender.send.sequence.next, length, cx);
        } else if let Some(last) = self.sender.scoreboard.highest_not_sacked() {
            let again = Retransmission {
                position: last.position,
                length: Some(last.length),
                regardless_of_window: true,
                restarts_timer: true,
            };
            if !self.sender.peer_window_admits(&again) {
                return false;
            }
            if self.sender.split_if_too_long(&again) {
                return true; // `output` sends the parts instead.
            }
            let before = self.sender.scoreboard.retransmitted_segments();
            self.sender.scoreboard.cut_before(again.position);
            self.retransmit_one(again, cx);
            // Except if an earlier retransmission of it is still in flight.
            let board = &mut self.sender.scoreboard;
            let quirks = &self.sender.config.linux_quirks;
            if quirks.recovery.probes_are_no_retransmissions
                && board.retransmitted_segments() > before
            {
                board.count_as_original(again.position);
            }
        } else {
            return true;
        }
        self.sender.statistics.loss_probes += 1;
        (self.sender.recovery).on_probe(&self.sender.send.sequence, new.is_none());
        true
    }
}

impl Sender {
    /// Merges following segments into a short segment that is retransmitted, as long as they fit
    /// into a full one and into the peer's window.
    #[inline(always)]
    fn collapse(&mut self, again: &mut Retransmission) {
        if self.quirks().sending.collapses_retransmissions
            && (again.length).is_some_and(|length| length < self.negotiated.segment)
        {
            self.collapse_short(again);
        }
    }

    #[inline(never)]
    fn collapse_short(&mut self, again: &mut Retransmission) {
        let send = &self.send;
        let edge = send.sequence.unacknowledged + send.window;
        let end = again.position + u64::from(again.length.unwrap_or(0));
        if again.position >= send.end || end >= edge {
            return;
        }
        let ends_record =
            |end: u64| !send.records.is_empty() && send.records.binary_search(&end).is_ok();
        let collapsed = self.scoreboard.collapse(
            again.position,
            self.negotiated.segment,
            edge,
            send.end,
            ends_record,
        );
        if let Some(collapsed) = collapsed {
            again.length = Some(collapsed.length);
        }
    }

    /// Cuts a retransmitted segment at the edge of the peer's window; the rest becomes a segment of
    /// its own. A segment entirely beyond the edge is a probe and stays whole. Returns whether it
    /// was cut.
    #[inline(always)]
    fn cut_for_window(&mut self, again: &mut Retransmission) -> bool {
        let edge = self.send.sequence.unacknowledged + self.send.window;
        let end = again.position + u64::from(again.length.unwrap_or(0));
        if end <= edge || again.position >= edge {
            return false;
        }
        self.cut_at(edge, again)
    }

    /// Cuts a segment that extends beyond the window, unless only by its FIN.
    #[inline(never)]
    fn cut_at(&mut self, edge: u64, again: &mut Retransmission) -> bool {
        let end = again.position + u64::from(again.length.unwrap_or(0));
        if end.min(self.send.end) <= edge || !self.quirks().sending.cuts_retransmissions_at_window {
            return false;
        }
        self.scoreboard.cut(again.position, edge);
        again.length = Some((edge - again.position) as u32);
        true
    }

    /// RFC 9293 section 3.8.6: data that the peer's window covers is retransmitted, even if the
    /// window has shrunk. (Reno and NewReno go back to SND.UNA and are limited by the window.)
    /// RFC 7323 section 2.4 requires the same.
    pub(super) fn peer_window_admits(&self, again: &Retransmission) -> bool {
        let send = &self.send;
        let first = send.sequence.unacknowledged;
        again.length.is_none()
            || again.position < first + send.window
            || again.position <= first && self.quirks().timers.probes_with_segment
    }
}
