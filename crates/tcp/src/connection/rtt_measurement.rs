//! Round-trip measurement from acknowledgments.

use bentpipe_types::{Packet, Span, Time};

use super::Sender;
use super::ack::SackReport;
use super::timers::Purpose;
use crate::recovery::{LossRecovery, Measured, WholeSegments};

impl Sender {
    /// The timestamp that a segment echoes, if timestamps are in use. RFC 7323 section 3.2:
    /// timestamps that were not negotiated are ignored. The segment must have an acknowledgment.
    #[inline]
    pub(super) fn echo(&self, packet: &Packet) -> Option<u32> {
        let (_, echo) = packet.timestamps().filter(|_| self.negotiated.timestamps)?;
        Some(echo)
    }

    /// Takes the round-trip sample of an acknowledgment with only SACKed data. Its timestamp echo
    /// is of no use: it belongs to the last in-order segment (RFC 7323 section 4.1).
    #[inline(always)]
    pub(super) fn measure_sacked(&mut self, report: SackReport<'_>, now: Time) -> Option<Span> {
        let measured = match report {
            SackReport::OneMore(covered) => Measured::of_one(now.since(covered.sent_at())),
            SackReport::Blocks(_) => self.scoreboard.delivered().measured()?,
        };
        self.rtt.note_minimum(measured.latest);
        if self.config.tcp_linux {
            self.recovery.on_rtt(measured.latest, now);
            return Some(measured.latest);
        }
        self.record_rtt(measured.earliest, measured.latest, now);
        // tcp_clean_rtx_queue in Linux: segments sent before the (last) transmission of the first
        // outstanding segment arrive only now, so the first segment is not late. Segments sent
        // after it would prove nothing.
        if let Some(first) = self.scoreboard.first_sent_at()
            && measured.earliest > now.since(first)
            && self.timers.retransmits()
        {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
            self.replace_early_timer(now);
        }
        Some(measured.latest)
    }

    /// Takes the round-trip sample of a duplicate acknowledgment from its echo, and restarts the
    /// retransmission timer, as ns-2's TCP-Linux does (`LinuxTcpAgent::time_processing`). The echo
    /// belongs to the last in-order segment, so that the samples grow during recovery.
    #[inline(never)]
    pub(super) fn measure_echo_of_duplicate(&mut self, packet: &Packet, now: Time) {
        let Some(echo) = self.echo(packet).filter(|&echo| echo != 0) else {
            return;
        };
        let milliseconds = self.config.clock.timestamp(now).wrapping_sub(echo);
        if milliseconds > i32::MAX as u32 {
            return;
        }
        let rtt = Span::from_millis(u64::from(milliseconds));
        let send = &self.send.sequence;
        self.rtt.on_sample(rtt, send.unacknowledged, send.next);
        if self.timers.retransmits() {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
            self.replace_early_timer(now);
        }
    }

    #[inline]
    fn record_rtt(&mut self, earliest: Span, latest: Span, now: Time) {
        let send = &self.send.sequence;
        self.rtt.on_sample(earliest, send.unacknowledged, send.next);
        self.statistics.rtt.record(earliest);
        self.recovery.on_rtt(latest, now);
    }

    /// Takes the round-trip sample of an acknowledgment from `before` to SND.UNA. Returns the round
    /// trip of the most recently sent segment, which excludes the peer's ACK delay.
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        packet: &Packet,
        before: u64,
        whole: Option<WholeSegments>,
        now: Time,
    ) -> Option<Span> {
        // RFC 6298 section 3: Karn's algorithm, no samples of retransmitted segments.
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
                // RFC 7323 section 4.1: the echo identifies the transmission. As in Linux used only
                // here, because its resolution is only a millisecond.
                let echo = self.echo(packet)?;
                let milliseconds = self.config.clock.timestamp(now).wrapping_sub(echo);
                if echo == 0 || milliseconds > i32::MAX as u32 {
                    return None;
                }
                let rtt = Span::from_millis(u64::from(milliseconds));
                (rtt, rtt)
            }
        };
        self.record_rtt(earliest, latest, now);
        Some(latest)
    }
}
