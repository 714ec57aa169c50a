//! Sending something again, and probes for what may be lost.

use bentpipe_types::Ctx;

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

impl Connection {
    /// Sends again what is lost, as far as the windows let it. All that one takes is compiled into the loop: of a window
    /// that overflows a queue, hundreds of thousands go again at once.
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
            left.allowance -= self.retransmit(again, cx);
            left.sent = true;
        }
        left
    }

    /// Returns how many bytes were sent again.
    #[inline(always)]
    fn retransmit(&mut self, again: Retransmission, cx: &mut Ctx<'_>) -> u64 {
        let send = &self.sender.send;
        let sent = send.sequence.highest.min(send.end);
        let length = again.length.unwrap_or_else(|| self.payload_limit());
        let length = sent.saturating_sub(again.position).min(u64::from(length));
        self.send_from::<false>(again.position, length as u32, cx);
        self.sender
            .recovery
            .on_retransmitted(again.position, cx.now, &mut self.sender.scoreboard);
        if again.length.is_some() && again.position == self.sender.send.sequence.unacknowledged {
            // Linux's tcp_xmit_retransmit_queue: as long as the first segment is known to be lost
            // again and sent again, there is nothing for the timer to tell.
            let at = self.sender.timeout_from(cx.now);
            self.sender.timers.set(Purpose::Retransmit, at);
        }
        length
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
            sent += self.retransmit(again, cx);
        }
        (sent, false)
    }

    /// Sends a probe for a lost tail (RFC 8985 section 7.3): a new segment, whatever the congestion
    /// window says, or else the last one again.
    pub(super) fn send_loss_probe(&mut self, cx: &mut Ctx<'_>) {
        let new = (self.next_probe()).filter(|_| self.sender.scoreboard.has_room());
        if let Some(length) = new {
            self.send_segment(self.sender.send.sequence.next, length, cx);
        } else if let Some(last) = self.sender.scoreboard.highest_not_sacked() {
            let again = Retransmission {
                position: last.position,
                length: Some(last.length),
                regardless_of_window: true,
            };
            if !self.sender.peer_takes(&again) {
                return;
            }
            if self.sender.is_split(&again) {
                return; // what is sent instead is `output`'s
            }
            self.retransmit(again, cx);
        } else {
            return;
        }
        self.sender.statistics.loss_probes += 1;
        (self.sender.recovery).on_probe(&self.sender.send.sequence, new.is_none());
    }
}

impl Sender {
    /// RFC 9293 section 3.8.6: what the peer's window still covers is sent again, though the window
    /// may have shrunk. (Reno and NewReno go by the window when they go back.)
    pub(super) fn peer_takes(&self, again: &Retransmission) -> bool {
        let send = &self.send;
        again.length.is_none() || again.position < send.sequence.unacknowledged + send.window
    }
}
