//! Sending something again, and probes for what may be lost.

use bentpipe_types::Ctx;

use super::known::Nothing;
use super::timers::Purpose;
use super::{Connection, Sender};
use crate::recovery::{LossRecovery, Retransmission};

/// What retransmissions have left over.
pub(super) struct Left {
    /// Bytes that the pacer lets out still.
    pub(super) allowance: u64,
    /// There were any.
    pub(super) sent: bool,
    /// There would have been more, but for the pacer.
    pub(super) paced: bool,
}

/// Segments that go again at once.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// Those of them that have not been sent.
    left: u64,
    several: bool,
}

impl Connection {
    /// Sends again what is lost, as far as the windows let it.
    #[inline(never)]
    pub(super) fn retransmit_lost(
        &mut self,
        window: u64,
        allowance: u64,
        cx: &mut Ctx<'_>,
    ) -> Left {
        let segment = u64::from(self.sender.negotiated.segment);
        let mut left = Left {
            allowance,
            sent: false,
            paced: false,
        };
        let mut buffer = Buffer::default();
        let in_buffers = self.sender.config.habits.sends_in_bursts
            && self
                .sender
                .path_mtu
                .is_lowered(self.sender.negotiated.segment);
        while (self.sender.recovery).wants_retransmit(&self.sender.scoreboard)
            && let Some(again) = self
                .sender
                .recovery
                .next_retransmit(&self.sender.send.sequence, &mut self.sender.scoreboard)
            && (again.regardless_of_window || window >= segment + self.in_flight())
            && self.sender.peer_takes(&again)
        {
            if left.allowance < segment {
                left.paced = true;
                break;
            }
            if self.sender.is_split(&again) {
                continue;
            }
            let ends = in_buffers && self.ends_buffer(&mut buffer, again.position, window);
            left.allowance -= self.retransmit(again, ends, cx);
            left.sent = true;
            if !in_buffers && self.sender.scoreboard.has_lost_to_send() {
                left.allowance -= self.retransmit_alike(window, left.allowance, cx);
            }
        }
        if left.sent {
            self.sender.scoreboard.cut_after_last();
        }
        left
    }

    /// Sends the first outstanding segment again, whatever the windows say.
    pub(super) fn retransmit_first(&mut self, cx: &mut Ctx<'_>) {
        let first = (self.sender.recovery)
            .next_retransmit(&self.sender.send.sequence, &mut self.sender.scoreboard);
        if let Some(again) = first
            && !self.sender.is_split(&again)
        {
            self.retransmit_one(again, cx);
            self.sender.scoreboard.cut_after_last();
        }
    }

    /// The same as [`retransmit`](Self::retransmit), where there are few.
    #[inline(never)]
    fn retransmit_one(&mut self, again: Retransmission, cx: &mut Ctx<'_>) -> u64 {
        self.retransmit(again, false, cx)
    }

    /// After the path turned out to take less than was sent, what goes again leaves several segments at once, as it was cut out
    /// of a buffer: does one end with what begins here? (tcp_xmit_retransmit_queue; with PSH, as any of several segments.
    /// Otherwise nobody sees it: full segments that go again are full ones.)
    fn ends_buffer(&mut self, buffer: &mut Buffer, position: u64, window: u64) -> bool {
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

    /// Returns how many bytes were sent again. `ends_buffer`: with it leaves the last of several segments that leave at once.
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
        // A short segment may have ended a write (tcp_mark_push), or was cut for a small window (tcp_write_wakeup).
        let short = length > 0 && length < u64::from(self.sender.negotiated.segment);
        self.sender.send.ends_burst = ends_buffer
            || short
                && self.sender.config.habits.sends_in_bursts
                && self.sender.scoreboard.is_pushed(again.position + length);
        let send = &self.sender.send;
        if again.position + length < send.end {
            self.send_from::<Nothing, true>(again.position, length as u32, cx);
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
            // Linux's tcp_xmit_retransmit_queue: as long as the first segment is known to be lost
            // again and sent again, there is nothing for the timer to tell. So BSD and ns-2 with a fast
            // retransmission; RFC 6298 section 5 is silent about it, RFC 6675 section 6 allows it. Without, the
            // timeout counted from the last acknowledgment sends a segment twice that has just gone again.
            let at = self.sender.timeout_from(cx.now);
            self.sender.timers.set(Purpose::Retransmit, at);
        }
        length
    }

    /// Does the FIN that follows what is sent again not go with it? It left later, or has not left.
    #[inline(never)]
    fn goes_without_fin(&self, again: &Retransmission, length: u64) -> bool {
        let apart = again
            .length
            .is_some_and(|segment| u64::from(segment) <= length && length > 0);
        apart && self.sender.config.habits.keeps_fin_apart
    }

    /// There is room in the window and nothing new: RFC 6675 section 4, NextSeg, rules 3 and 4.
    /// Returns the bytes sent, and whether it was the pacer that stopped it.
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
            if !self.sender.peer_takes(&again) {
                break;
            }
            if allowance < segment + sent {
                return (sent, true);
            }
            if self.sender.is_split(&again) {
                continue;
            }
            sent += self.retransmit_one(again, cx);
        }
        (sent, false)
    }

    /// Sends a probe for a lost tail (RFC 8985 section 7.3): a new segment, whatever the congestion
    /// window says, or else the last one again. False: the peer's window takes neither.
    pub(super) fn send_loss_probe(&mut self, cx: &mut Ctx<'_>) -> bool {
        let new = (self.next_probe()).filter(|_| self.sender.scoreboard.has_room());
        if let Some(length) = new {
            self.send_segment(self.sender.send.sequence.next, length, cx);
        } else if let Some(last) = self.sender.scoreboard.highest_not_sacked() {
            let again = Retransmission {
                position: last.position,
                length: Some(last.length),
                regardless_of_window: true,
                restarts_timer: true,
            };
            if !self.sender.peer_takes(&again) {
                return false;
            }
            if self.sender.is_split(&again) {
                return true; // what is sent instead is `output`'s
            }
            let before = self.sender.scoreboard.retransmitted_segments();
            self.sender.scoreboard.cut_before(again.position);
            self.retransmit_one(again, cx);
            // (Unless it was sent again before, and that is under way still.)
            let board = &mut self.sender.scoreboard;
            if self.sender.config.habits.counts_no_probes && board.retransmitted_segments() > before
            {
                board.count_once(again.position);
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
    /// Of what goes again a short segment takes in those that follow it, as many as fill it and the peer's window takes.
    #[inline(always)]
    fn collapse(&mut self, again: &mut Retransmission) {
        if self.config.habits.keeps_fin_apart
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

    /// Does the peer's window have room for a part of this segment only? Then that is what goes, and the rest is a segment
    /// of its own. (If there is room for nothing of it, it is a probe, and goes as it is.)
    #[inline(always)]
    fn cut_for_window(&mut self, again: &mut Retransmission) -> bool {
        let edge = self.send.sequence.unacknowledged + self.send.window;
        let end = again.position + u64::from(again.length.unwrap_or(0));
        if end <= edge || again.position >= edge {
            return false;
        }
        self.cut_at(edge, again)
    }

    /// The same, where it reaches beyond the window's edge, with its FIN or without.
    #[inline(never)]
    fn cut_at(&mut self, edge: u64, again: &mut Retransmission) -> bool {
        let end = again.position + u64::from(again.length.unwrap_or(0));
        if end.min(self.send.end) <= edge || !self.config.habits.cuts_for_window {
            return false;
        }
        self.scoreboard.cut(again.position, edge);
        again.length = Some((edge - again.position) as u32);
        true
    }

    /// RFC 9293 section 3.8.6: what the peer's window still covers is sent again, though the window
    /// may have shrunk. (Reno and NewReno go by the window when they go back.)
    pub(super) fn peer_takes(&self, again: &Retransmission) -> bool {
        let send = &self.send;
        let first = send.sequence.unacknowledged;
        again.length.is_none()
            || again.position < first + send.window
            || again.position <= first && self.config.habits.probes_with_segment
    }
}
