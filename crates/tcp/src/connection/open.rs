//! Opening a connection (RFC 9293 section 3.5).

use std::sync::Arc;

use bentpipe_types::{
    Ctx, Endpoint, Flags, Packet, PacketRef, Port, SackBlocks, Seq, Span, SynOptions, Time,
};

use super::fast::FastPath;
use super::fast_open::{FastOpenState, Opening, PassiveFastOpen};
use super::receive::Receive;
use super::timers::Purpose;
use super::{Accepted, Connection, Events, Sender, State};
use crate::Config;
use crate::congestion::Controller;
use crate::delivered_estimate::DeliveredEstimate;
use crate::options::{TIMESTAMPS_LENGTH, negotiate, offer};

/// Linux's TCP_TIMEOUT_MIN.
const MINIMUM_TIMEOUT: Span = Span::from_millis(8);

/// Linux's TCP_DELACK_MAX.
const MAXIMUM_DELAYED_ACK: Span = Span::from_millis(200);

impl Connection {
    /// Opens a connection actively (RFC 9293 section 3.10.1): sends a SYN.
    pub fn connect(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let mut connection = Self::new(&Opening {
            config: &Arc::new(config.clone()),
            local,
            remote,
            egress,
            initial_sequence,
        });
        // RFC 9293 section 3.9.1.1: all segments have the local address given here.
        connection.send_syn(cx);
        connection
    }

    /// Opens a connection passively: a listening host has received `syn`
    /// (RFC 9293 section 3.10.7.2). Sends a SYN+ACK. Consumes `syn`.
    ///
    /// A segment without SYN, or with ACK or RST, does not open a connection. The returned
    /// connection is then in [`State::Closed`], and the segment is answered like one to a closed
    /// port.
    pub fn accept(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let opening = Opening {
            config: &Arc::new(config.clone()),
            local,
            remote,
            egress,
            initial_sequence,
        };
        Self::accept_fast(&opening, syn, PassiveFastOpen::Ignore, cx)
    }

    /// Like [`accept`](Self::accept), with Fast Open as the listening host decided. The first
    /// [`received_offset`](Self::received_offset) bytes of the SYN's data are accepted.
    pub fn accept_fast(
        opening: &Opening<'_>,
        syn: PacketRef,
        fast_open: PassiveFastOpen,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let mut connection = Self::new(opening);
        let egress = opening.egress;
        connection.passive = true;
        let packet = *cx.packets.get(syn);
        let unwanted = Flags::RST.with(Flags::ACK);
        if packet.flags.has(unwanted) || !packet.flags.has(Flags::SYN) {
            connection.enter_closed(Events::NONE, cx.now);
            super::reset_reply(syn, egress, cx);
            return connection;
        }
        let options = cx.packets.syn_options(syn);
        cx.packets.release(syn);
        connection.sender.statistics.segments_received += 1;
        connection.syn_received(&packet, &options, cx);
        connection.state = State::SynReceived;
        // A connection that accepts the SYN's data may answer at once (tcp_fastopen_create_child).
        if opening
            .config
            .linux_quirks
            .handshake
            .ignores_syn_window_maximum
            && fast_open != PassiveFastOpen::Accept
        {
            connection.sender.send.window_maximum = 0;
        }
        match fast_open {
            PassiveFastOpen::Ignore => {}
            PassiveFastOpen::Offer(cookie) => connection.offered.fast_open = Some(cookie),
            PassiveFastOpen::Accept => {
                // The window that the SYN+ACK will advertise limits the data.
                connection.receive.syn_window_field();
                connection.accept_syn_data(&packet, cx.now);
            }
        }
        connection.send_syn(cx);
        connection
    }

    pub(super) fn new(opening: &Opening<'_>) -> Self {
        let Opening {
            config,
            local,
            remote,
            egress,
            initial_sequence,
        } = *opening;
        Self {
            feed: None,
            state: State::SynSent,
            events: Events::NONE,
            fast_path: FastPath::default(),
            passive: false,
            syn_answered_again: false,
            egress,
            sender: Sender::new(config, initial_sequence),
            receive: Receive::new(config),
            offered: offer(config, None),
            template: Packet::new(local, remote, config.ip_version),
            fast_open: FastOpenState::default(),
            peer_fast_open: None,
            acknowledged_in_window: initial_sequence,
            peer_mss: None,
            path_error: None,
            unanswered_probes: 0,
            keep_alive_tick: 0,
        }
    }

    /// Processes the peer's SYN, with or without ACK: negotiates the options.
    fn syn_received(&mut self, packet: &Packet, options: &SynOptions, cx: &Ctx<'_>) {
        let timestamps = packet.timestamps();
        let negotiated = negotiate(&self.sender.config, options, timestamps.is_some());
        self.sender.on_negotiated(negotiated);
        self.template = self.bare_template();
        // RFC 7323 section 3.2: from now on, every segment carries timestamps.
        if negotiated.timestamps {
            self.template.header_length += TIMESTAMPS_LENGTH;
            self.template.set_timestamps(0, 0);
        }
        self.sender.init_path_mtu(self.passive, cx.now);
        self.offered = offer(&self.sender.config, Some(options));
        self.peer_fast_open = options.fast_open;
        self.peer_mss = options.maximum_segment_size;
        self.negotiate_ecn(packet);
        self.receive.synchronize(packet.sequence, &negotiated);
        if let Some((value, _)) = timestamps {
            self.receive.timestamp_recent = value;
            self.receive.timestamp_recent_at = cx.now;
        }
        // RFC 7323 section 2.2: the window field of a SYN is not scaled.
        self.sender.send.window = u64::from(packet.window);
        self.sender.send.window_maximum = self.sender.send.window;
        self.sender.send.window_sequence = packet.sequence;
        self.sender.congestion = Controller::new(
            &self.sender.config.congestion_control,
            &self.sender.config.congestion_settings(),
            self.sender.negotiated.segment,
            self.sender.initial_window(self.has_lost_syns()),
        );
    }

    /// Enters ESTABLISHED: our SYN is acknowledged by `packet`, and the peer's was received.
    pub(super) fn established(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        position: u64,
        cx: &mut Ctx<'_>,
    ) {
        self.settle_syn_data(position);
        let early = self.may_send_before_established();
        let window = *self.sender.congestion.window();
        let _ = self.acknowledgment(packet, sack, cx.now);
        // RFC 7323 section 2.2: the window field of a SYN is not scaled. After a simultaneous open,
        // Linux scales it all the same (tcp_rcv_state_process).
        if self.state == State::SynReceived
            && packet.flags.has(Flags::SYN)
            && self.quirks().handshake.simultaneous_open_repeats_options
        {
            let shift = self.sender.negotiated.send_shift;
            self.sender.set_window(packet, shift);
        }
        // RFC 6298 section 5.7: the RTO after a lost SYN. Linux applies this whenever the handshake
        // gave no round-trip sample, also if a repeated SYN was answered (tcp_init_metrics,
        // tcp_synack_rtt_meas).
        let ambiguous = self.syn_answered_again && self.quirks().handshake.answers_as_listener;
        if self.sender.send.syns_lost > 0 || ambiguous {
            self.sender.rtt.set_rto_after_lost_syn();
        }
        // The SYN does not count for congestion control, unless it was retransmitted. The reset of
        // the window below is skipped if data was sent before the acknowledgment of the SYN and
        // that acknowledgment changed the window.
        if !early || *self.sender.congestion.window() == window {
            self.sender.congestion = Controller::new(
                &self.sender.config.congestion_control,
                &self.sender.config.congestion_settings(),
                self.sender.negotiated.segment,
                self.sender.initial_window(self.has_lost_syns()),
            );
        }
        self.sender.delivered = DeliveredEstimate::default();
        self.sender.init_path_model();
        self.sender
            .congestion
            .on_established(self.sender.rtt.smoothed(), cx.now);
        self.sender.send.attempts = 0;
        self.receive.data_at = cx.now;
        self.receive.established(cx.now);
        self.sender.expand_send_buffer();
        self.events |= Events::ESTABLISHED;
        self.state = if self.sender.send.fin {
            State::FinWait1 // The application has closed already.
        } else {
            State::Established
        };
        if self.sender.send.is_idle() {
            self.start_keep_alive_timer(cx.now);
        }
    }

    /// Whether our SYN was retransmitted so often that it counts for congestion control.
    fn has_lost_syns(&self) -> bool {
        let lost = self.sender.send.syns_lost;
        if !self.quirks().handshake.tolerates_one_lost_syn {
            return lost > 0;
        }
        // After a simultaneous open, Linux keeps no record of a retransmitted SYN once it is
        // acknowledged (tcp_clean_rtx_queue clears its time). The SYN counts as delayed, and with
        // SACK the reduction is undone (tcp_packet_delayed).
        let both = !self.passive && self.state == State::SynReceived;
        let taken_back = both && self.sender.negotiated.sack;
        !taken_back && (lost > 1 || lost > 0 && self.syn_answered_again)
    }

    /// Whether the segment's timestamp echoes none of our SYNs.
    fn echoes_no_syn(&self, packet: &Packet, now: Time) -> bool {
        let Some((_, echo)) = packet
            .timestamps()
            .filter(|_| self.sender.config.timestamps)
        else {
            return false;
        };
        let first = self.sender.scoreboard.first_sent_at().unwrap_or(now);
        let clock = self.sender.config.clock;
        let (first, last) = (clock.timestamp(first), clock.timestamp(now));
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }

    /// Processes a segment in SYN-SENT (RFC 9293 section 3.10.7.3).
    pub(super) fn syn_sent(
        &mut self,
        packet: &Packet,
        options: &SynOptions,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let acknowledges = packet.flags.has(Flags::ACK);
        // RFC 9293 section 3.10.7.3 step 1: SEG.ACK =< ISS or SEG.ACK > SND.NXT.
        let position = self.syn_acknowledged(packet);
        if acknowledges && position.is_none() {
            self.sender.statistics.unacceptable += 1;
            if !packet.flags.has(Flags::RST) {
                self.send_reset(packet.acknowledgment, false, cx);
            }
            if self.quirks().handshake.resends_syn_after_bad_ack && self.sender.send.attempts == 0 {
                let at = self.sender.config.clock.expiry(cx.now, MINIMUM_TIMEOUT);
                self.sender.timers.set(Purpose::Retransmit, at);
            }
            return None;
        }
        // Linux refuses an acknowledgment whose timestamp echoes none of our SYNs.
        if acknowledges
            && self.quirks().handshake.checks_syn_timestamp_echo
            && !packet.flags.has(Flags::RST)
            && self.echoes_no_syn(packet, cx.now)
        {
            self.sender.statistics.unacceptable += 1;
            self.send_reset(packet.acknowledgment, false, cx);
            return None;
        }
        // RFC 9293 section 3.10.7.3 step 2: RST.
        if packet.flags.has(Flags::RST) {
            if acknowledges {
                self.enter_closed(Events::RESET, cx.now);
            }
            return None;
        }
        // RFC 9293 section 3.10.7.3 step 4: SYN. Data on a SYN is not accepted: it is not
        // acknowledged, so that the peer retransmits it. Data on a SYN+ACK is accepted.
        if !packet.flags.has(Flags::SYN) {
            return None;
        }
        self.syn_received(packet, options, cx);
        if let Some(position) = position.filter(|_| acknowledges) {
            let pending =
                self.sender.send.writer_waits && self.quirks().handshake.delays_handshake_ack;
            self.established(packet, None, position, cx);
            if pending {
                // Linux saves an acknowledgment, because data is about to carry it.
                self.receive.answer_pending = true;
                self.sender
                    .timers
                    .delay_acknowledgment(cx.now + MAXIMUM_DELAYED_ACK);
            } else {
                self.receive.acknowledge_now = true;
            }
            return self.process_data_and_fin(packet, 0, cx);
        } else {
            // Simultaneous open (RFC 9293 section 3.5, figure 7).
            self.state = State::SynReceived;
            if self.quirks().handshake.simultaneous_open_repeats_options {
                self.offered = offer(&self.sender.config, None);
            } else {
                let at = cx.now + self.sender.rtt.rto();
                self.sender.timers.set(Purpose::Retransmit, at);
            }
            self.send_syn(cx);
        }
        None
    }
}

impl Sender {
    /// The initial window: RFC 6928, or one segment after a `lost` SYN (RFC 5681 section 3.1).
    pub(super) fn initial_window(&self, lost: bool) -> u64 {
        let segments = match lost {
            true => 1,
            false => u64::from(self.config.initial_window.max(1)),
        };
        segments * u64::from(self.negotiated.segment)
    }
}
