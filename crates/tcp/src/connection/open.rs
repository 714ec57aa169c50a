//! Opening a connection.

use bentpipe_types::{Ctx, Endpoint, Flags, Packet, PacketRef, Port, Seq, SynOptions};

use super::receive::Receive;
use super::send::Send;
use super::timers::{Purpose, Timers};
use super::{Connection, Events, State};
use crate::Config;
use crate::congestion::Controller;
use crate::delivered::Delivered;
use crate::options::{Negotiated, negotiate, offer};
use crate::pacing::{Pacer, PacingKind};
use crate::recovery::{Recovery, Scoreboard};
use crate::rtt::RttEstimator;
use crate::statistics::Statistics;

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
        let mut connection = Self::new(config, local, remote, egress, initial_sequence);
        connection.send_syn(cx);
        connection
    }

    /// Opens a connection passively: a listening host has received `syn`, for a connection of this
    /// kind (RFC 9293 section 3.10.7.2). Sends a SYN+ACK. Consumes `syn`.
    ///
    /// A segment that is no SYN, or more than one (with ACK or RST), is no reason to open: the
    /// connection comes back in [`State::Closed`], and the segment is answered as one to nowhere.
    pub fn accept(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let mut connection = Self::new(config, local, remote, egress, initial_sequence);
        connection.passive = true;
        let packet = *cx.packets.get(syn);
        let unwanted = Flags::RST.with(Flags::ACK);
        if packet.flags.has(unwanted) || !packet.flags.has(Flags::SYN) {
            connection.closed(Events::NONE);
            super::reset_reply(syn, egress, cx);
            return connection;
        }
        let options = cx.packets.syn_options(syn);
        cx.packets.release(syn);
        connection.statistics.segments_received += 1;
        connection.syn_received(&packet, &options, cx);
        connection.state = State::SynReceived;
        connection.send_syn(cx);
        connection
    }

    fn new(
        config: &Config,
        local: Endpoint,
        remote: Endpoint,
        egress: Port,
        initial_sequence: Seq,
    ) -> Self {
        let segment = u32::from(config.mss.max(1));
        Self {
            state: State::SynSent,
            events: Events::NONE,
            passive: false,
            egress,
            timers: Timers::new(),
            send: Send::new(initial_sequence, config.send_buffer, segment),
            receive: Receive::new(config),
            negotiated: Negotiated {
                segment,
                send_shift: 0,
                receive_shift: 0,
                timestamps: false,
                sack: false,
            },
            offered: offer(config, None),
            recovery: Recovery::new(config, false),
            congestion: Controller::new(config, segment, u64::from(segment)),
            rtt: RttEstimator::new(config),
            scoreboard: Scoreboard::new(),
            delivered: Delivered::default(),
            pacer: Pacer::new(PacingKind::Off, false),
            delivery_rate: None,
            template: Packet::new(local, remote, config.ip_version),
            statistics: Statistics::default(),
            config: config.clone(),
        }
    }

    /// The peer's SYN, with or without an acknowledgment of ours: what both agree on.
    fn syn_received(&mut self, packet: &Packet, options: &SynOptions, cx: &Ctx<'_>) {
        let timestamps = packet.timestamps();
        self.negotiated = negotiate(&self.config, options, timestamps.is_some());
        self.offered = offer(&self.config, Some(options));
        self.send.sequence.segment = self.negotiated.segment;
        self.recovery = Recovery::new(&self.config, self.negotiated.sack);
        let watch = self.recovery.watches_retransmissions();
        self.scoreboard.watch_retransmissions(watch);
        self.receive.synchronize(packet.sequence, &self.negotiated);
        if let Some((value, _)) = timestamps {
            self.receive.timestamp_recent = value;
            self.receive.timestamp_recent_at = cx.now;
        }
        // RFC 7323 section 2.2: the window of a SYN is not scaled
        self.send.window = u64::from(packet.window);
        self.send.window_maximum = self.send.window;
        self.send.window_sequence = packet.sequence;
        self.congestion =
            Controller::new(&self.config, self.negotiated.segment, self.initial_window());
    }

    /// RFC 6928, and RFC 5681 section 3.1: one segment, if the SYN had to be sent again.
    pub(super) fn initial_window(&self) -> u64 {
        let segments = if self.send.syn_lost {
            1
        } else {
            u64::from(self.config.initial_window.max(1))
        };
        segments * u64::from(self.negotiated.segment)
    }

    /// Our SYN is acknowledged by `packet`, and the peer's has come: ESTABLISHED.
    pub(super) fn established(&mut self, packet: &Packet, cx: &mut Ctx<'_>) {
        let _ = self.acknowledgment(packet, None, cx.now);
        if self.send.syn_lost {
            // RFC 6298 section 5.7
            self.rtt.syn_was_lost();
        }
        // The SYN doesn't count for congestion control, except where it had to be sent again.
        self.congestion =
            Controller::new(&self.config, self.negotiated.segment, self.initial_window());
        self.delivered = Delivered::default();
        self.learn_path();
        self.congestion.on_established(self.rtt.smoothed(), cx.now);
        self.send.attempts = 0;
        self.receive.data_at = cx.now;
        self.events |= Events::ESTABLISHED;
        self.state = if self.send.fin {
            State::FinWait1 // the application has closed already
        } else {
            State::Established
        };
    }

    /// RFC 9293 section 3.10.7.3: a segment arrives in SYN-SENT.
    pub(super) fn syn_sent(&mut self, packet: &Packet, options: &SynOptions, cx: &mut Ctx<'_>) {
        let acknowledges = packet.flags.has(Flags::ACK);
        // First: SEG.ACK =< ISS or SEG.ACK > SND.NXT
        if acknowledges && packet.acknowledgment != self.send.wire(1) {
            self.statistics.unacceptable += 1;
            if !packet.flags.has(Flags::RST) {
                self.send_reset(packet.acknowledgment, false, cx);
            }
            return;
        }
        // Second
        if packet.flags.has(Flags::RST) {
            if acknowledges {
                self.closed(Events::RESET);
            }
            return;
        }
        // Fourth. Text on a SYN is not taken: it isn't acknowledged, and will come again.
        if !packet.flags.has(Flags::SYN) {
            return;
        }
        self.syn_received(packet, options, cx);
        if acknowledges {
            self.established(packet, cx);
            self.receive.acknowledge_now = true;
        } else {
            // Both open at once (RFC 9293 section 3.5, figure 7).
            self.state = State::SynReceived;
            self.timers
                .set(Purpose::Retransmit, cx.now + self.rtt.rto());
            self.send_syn(cx);
        }
    }
}
