//! What acknowledgments tell of the round trip.

use bentpipe_types::{Packet, Span, Time};

use super::Sender;
use super::ack::Told;
use super::timers::Purpose;
use crate::recovery::{LossRecovery, Measured, Whole};
use crate::timestamp;

impl Sender {
    /// The timestamp that a segment echoes, where timestamps are in use.
    #[inline]
    pub(super) fn echo(&self, packet: &Packet) -> Option<u32> {
        let (_, echo) = packet.timestamps().filter(|_| self.negotiated.timestamps)?;
        Some(echo)
    }

    /// Takes the round-trip sample of an acknowledgment that only SACKs. Its echo tells nothing: it
    /// is of the last segment that was in order (RFC 7323 section 4.1).
    #[inline(always)]
    pub(super) fn measure_sacked(&mut self, told: Told<'_>, now: Time) -> Option<Span> {
        let measured = match told {
            Told::OneMore(covered) => Measured::of_one(now.since(covered.sent_at())),
            Told::Blocks(_) => self.scoreboard.delivered().measured()?,
        };
        self.rtt.note_minimum(measured.latest);
        self.sampled(measured.earliest, measured.latest, now);
        // Linux's tcp_clean_rtx_queue: what left before the first segment did (again) arrives only
        // now, so that segment is not late. Of what left after it, no such thing can be said.
        if let Some(first) = self.scoreboard.first_sent_at()
            && measured.earliest > now.since(first)
            && self.timers.retransmits()
        {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
            self.supersede_early(now);
        }
        Some(measured.latest)
    }

    #[inline]
    fn sampled(&mut self, earliest: Span, latest: Span, now: Time) {
        let send = &self.send.sequence;
        self.rtt.on_sample(earliest, send.unacknowledged, send.next);
        self.statistics.rtt.record(earliest);
        self.recovery.on_rtt(latest, now);
    }

    /// Takes the round-trip sample of an acknowledgment of everything from `before` to SND.UNA, and
    /// returns the round trip without the peer's delaying its acknowledgment.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        packet: &Packet,
        before: u64,
        whole: Option<Whole>,
        now: Time,
    ) -> Option<Span> {
        // Karn's algorithm (RFC 6298 section 3): not of anything that was sent twice.
        let measured = if before < self.send.ambiguous_below {
            None
        } else if let Some(whole) = whole {
            Some(whole.measured(now))
        } else {
            self.scoreboard.delivered().measured()
        };
        let (earliest, latest) = match measured {
            Some(measured) => {
                self.rtt.note_minimum(measured.latest);
                (measured.earliest, measured.latest)
            }
            None => {
                // RFC 7323 section 4.1: the echo tells which of them it was. As in Linux only
                // then, because its milliseconds are coarser.
                let echo = self.echo(packet)?;
                let milliseconds = timestamp(now).wrapping_sub(echo);
                if echo == 0 || milliseconds > i32::MAX as u32 {
                    return None;
                }
                let rtt = Span::from_millis(u64::from(milliseconds));
                (rtt, rtt)
            }
        };
        self.sampled(earliest, latest, now);
        Some(latest)
    }
}
