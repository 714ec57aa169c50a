//! A connection of an endpoint: quinn's, with its times and its limits.

use bentpipe_host::TransportState;
use bentpipe_host::report::QuicReport;
use bentpipe_tcp::{Limit, LimitedTimes};
use bentpipe_types::{Endpoint, Time};
use quinn_proto::{Connection, ConnectionError};

use crate::clock;
use crate::window_rule::Monitor;

/// A connection.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) monitor: Monitor,
    pub(crate) local_port: u16,
    pub(crate) remote: Endpoint,
    /// Whether this end opened it.
    pub(crate) opened_here: bool,
    pub(crate) began: Time,
    pub(crate) established: Option<Time>,
    pub(crate) first_byte: Option<Time>,
    /// Whether its first streams were sent as 0-RTT data.
    pub(crate) early: bool,
    /// When it was lost or closed.
    pub(crate) lost: Option<ConnectionError>,
    pub(crate) deadline: Option<Time>,
    /// Time of the last datagram from the peer.
    pub(crate) heard: Time,
    /// Number of open streams.
    pub(crate) streams: usize,
    /// Number of probe timeouts.
    pub(crate) probe_timeouts: u64,
    limited: LimitedTimes,
}

impl Link {
    pub(crate) fn new(
        connection: Connection,
        monitor: Monitor,
        local_port: u16,
        remote: Endpoint,
        opened_here: bool,
        now: Time,
    ) -> Self {
        Self {
            connection,
            monitor,
            local_port,
            remote,
            opened_here,
            began: now,
            established: None,
            first_byte: None,
            early: false,
            lost: None,
            deadline: None,
            heard: now,
            streams: 0,
            probe_timeouts: 0,
            limited: LimitedTimes::default(),
        }
    }

    /// Whether it is open or being opened.
    pub(crate) fn is_open(&self) -> bool {
        self.lost.is_none() && !self.connection.is_closed()
    }

    /// Whether a stream can be opened: 0-RTT data are sent before the handshake ends.
    pub(crate) fn is_ready(&self) -> bool {
        self.established.is_some() || self.early
    }

    /// Updates the deadline after an event. A closed connection has none, and neither has one that
    /// only waits for its idle timeout: it expires when the endpoint is next used.
    pub(crate) fn update_deadline(&mut self, idle: Option<std::time::Duration>, keeps_alive: bool) {
        let next = self.connection.poll_timeout();
        let is_idle = self.streams == 0
            && !keeps_alive
            && self.established.is_some()
            && idle.is_some_and(|idle| {
                next.is_some_and(|next| next >= clock::instant(self.heard) + idle)
            });
        self.deadline = next.filter(|_| self.is_open() && !is_idle).map(clock::time);
    }

    /// Determines what limits the sender from now on.
    pub(crate) fn note_limit(&mut self, wants_more: bool, now: Time) {
        let state = self.state();
        let is_full =
            state.in_flight + u64::from(self.connection.current_mtu()) >= state.congestion_window;
        let limit = if !self.is_ready() {
            Limit::Idle
        } else if is_full
            && state
                .slow_start_threshold
                .is_none_or(|at| state.congestion_window < at)
        {
            Limit::SlowStart
        } else if is_full {
            Limit::CongestionWindow
        } else if state.in_flight > 0 && !self.monitor.app_limited() {
            Limit::Pacing
        } else if wants_more {
            Limit::ReceiveWindow
        } else if state.in_flight > 0 {
            Limit::Application
        } else {
            Limit::Idle
        };
        self.limited.set(limit, now);
    }

    /// Returns its state.
    pub(crate) fn state(&self) -> TransportState {
        let metrics = self.connection.congestion_state().metrics();
        TransportState {
            congestion_window: metrics.congestion_window,
            slow_start_threshold: metrics.ssthresh.filter(|at| *at < u64::MAX),
            in_flight: self.monitor.in_flight(),
            smoothed_rtt: (self.established.is_some()).then(|| clock::span(self.connection.rtt())),
            pacing_rate: metrics.pacing_rate,
            limit: self.limited.current(),
        }
    }

    /// Adds its figures to those of other connections.
    pub(crate) fn add_to(&self, report: &mut QuicReport, now: Time) {
        let stats = self.connection.stats();
        let path = stats.path;
        report.connections += 1;
        if let Some(at) = self.established {
            report.established += 1;
            report.handshake.get_or_insert(at.since(self.began));
        }
        if let Some(at) = self.first_byte {
            report.first_byte.get_or_insert(at.since(self.began));
        }
        report.early_data += u64::from(self.early && self.connection.accepted_0rtt());
        report.packets_sent += stats.udp_tx.datagrams;
        report.packets_received += stats.udp_rx.datagrams;
        report.bytes_sent += stats.udp_tx.bytes;
        report.packets_lost += path.lost_packets;
        report.probe_timeouts += self.probe_timeouts;
        report.persistent_congestion += self.monitor.persistent_congestion();
        report.ecn_marks += self.monitor.ecn_marks();
        report.bytes_lost += path.lost_bytes;
        report.congestion_events += path.congestion_events;
        report.mtu_probes += path.sent_plpmtud_probes;
        report.mtu_probes_lost += path.lost_plpmtud_probes;
        report.black_holes += path.black_holes_detected;
        report.acks_sent += stats.frame_tx.acks;
        report.acks_received += stats.frame_rx.acks;
        if self.established.is_some() {
            report.smoothed_rtt = Some(clock::span(path.rtt));
            report.minimum_rtt = Some(clock::span(path.min_rtt));
        }
        report.mtu = path.current_mtu;
        report.window = path.cwnd;
        let mut limited = self.limited.clone();
        limited.set(Limit::Idle, now);
        report.limited.add(&limited);
        if let Some(reason) = &self.lost
            && !matches!(
                reason,
                ConnectionError::LocallyClosed | ConnectionError::ApplicationClosed(_)
            )
        {
            report.failure = Some(reason.to_string());
        }
    }
}
