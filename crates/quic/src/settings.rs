//! Settings of a host's QUIC endpoints.

use std::sync::Arc;
use std::time::Duration;

use bentpipe_tcp::Config;
use bentpipe_types::Span;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::clock::duration;
use crate::session::HandshakeLengths;
use crate::window_rule::{Monitor, MonitoredFactory, WindowRule};

/// Congestion controller of an endpoint.
#[derive(Clone, Debug)]
pub enum QuicRule {
    /// quinn's CUBIC, its default.
    QuinnCubic,
    /// quinn's NewReno.
    QuinnNewReno,
    /// A window rule of TCP, with its settings.
    Tcp(Arc<Config>),
}

/// ACK frequency (draft-ietf-quic-ack-frequency) that an endpoint requests from its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFrequency {
    /// Number of ack-eliciting packets after which the peer may delay no longer.
    pub threshold: u32,
    /// Maximum delay of an acknowledgment, or `None` for the peer's own.
    pub delay: Option<Span>,
}

/// Settings of an endpoint. The defaults are quinn's.
#[derive(Clone, Debug)]
pub struct QuicSettings {
    /// Congestion controller.
    pub rule: QuicRule,
    /// Initial congestion window in bytes, or `None` for that of the rule.
    pub initial_window: Option<u64>,
    /// Flow-control window of a stream in bytes.
    pub stream_window: u64,
    /// Flow-control window of a connection in bytes, or `None` for no limit.
    pub connection_window: Option<u64>,
    /// Maximum number of unacknowledged bytes of a connection.
    pub send_window: u64,
    /// Maximum number of streams that the peer may have open.
    pub streams: u32,
    /// ACK frequency that the peer is asked for.
    pub ack_frequency: Option<AckFrequency>,
    /// Round-trip time before the first measurement.
    pub initial_rtt: Span,
    /// Time without packets after which a connection ends, or `None` for no limit.
    pub idle_timeout: Option<Span>,
    /// Time without packets after which a PING is sent.
    pub keep_alive: Option<Span>,
    /// Payload of the first UDP datagrams in bytes.
    pub initial_mtu: u16,
    /// Largest payload of UDP datagrams that path MTU discovery tries, or `None` to disable it.
    pub maximum_mtu: Option<u16>,
    /// Datagrams that are sent at once at most (generic segmentation offload).
    pub burst: usize,
    /// Whether a connection after the first one sends 0-RTT data.
    pub early_data: bool,
    /// Lengths of handshake messages.
    pub handshake: HandshakeLengths,
}

impl Default for QuicSettings {
    fn default() -> Self {
        Self {
            rule: QuicRule::QuinnCubic,
            initial_window: None,
            stream_window: 1_250_000,
            connection_window: None,
            send_window: 10_000_000,
            streams: 100,
            ack_frequency: None,
            initial_rtt: Span::from_millis(333),
            idle_timeout: Some(Span::from_secs(30)),
            keep_alive: None,
            initial_mtu: 1_200,
            maximum_mtu: Some(1_452),
            burst: 10,
            early_data: false,
            handshake: HandshakeLengths::default(),
        }
    }
}

/// Returns a QUIC integer; the largest one if the value does not fit.
fn integer(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

impl QuicSettings {
    /// Returns quinn's configuration of a connection whose controller reports to `monitor`.
    pub(crate) fn transport(&self, monitor: &Monitor, seed: u64) -> TransportConfig {
        let mut config = TransportConfig::default();
        let milliseconds = |span: Span| integer(span.as_nanos() / 1_000_000);
        config
            .stream_receive_window(integer(self.stream_window))
            .receive_window(self.connection_window.map_or(VarInt::MAX, integer))
            .send_window(self.send_window)
            .max_concurrent_bidi_streams(self.streams.into())
            .initial_rtt(duration(self.initial_rtt))
            .max_idle_timeout(self.idle_timeout.map(|span| {
                IdleTimeout::from(VarInt::from_u32(
                    u32::try_from(milliseconds(span).into_inner()).unwrap_or(u32::MAX),
                ))
            }))
            .keep_alive_interval(self.keep_alive.map(duration))
            .initial_mtu(self.initial_mtu)
            .mtu_discovery_config(self.maximum_mtu.map(|most| {
                let mut discovery = MtuDiscoveryConfig::default();
                discovery.upper_bound(most);
                discovery
            }))
            .ack_frequency_config(self.ack_frequency.map(|asked| {
                let mut frequency = AckFrequencyConfig::default();
                frequency
                    .ack_eliciting_threshold(asked.threshold.into())
                    .max_ack_delay(asked.delay.map(duration));
                frequency
            }));
        let factory = match &self.rule {
            QuicRule::QuinnCubic => {
                let mut cubic = CubicConfig::default();
                if let Some(window) = self.initial_window {
                    cubic.initial_window(window);
                }
                MonitoredFactory::of(monitor.clone(), Arc::new(cubic))
            }
            QuicRule::QuinnNewReno => {
                let mut reno = NewRenoConfig::default();
                if let Some(window) = self.initial_window {
                    reno.initial_window(window);
                }
                MonitoredFactory::of(monitor.clone(), Arc::new(reno))
            }
            QuicRule::Tcp(tcp) => {
                let rule = WindowRule::factory(Arc::clone(tcp), self.initial_window, seed);
                MonitoredFactory::of(monitor.clone(), Arc::new(rule))
            }
        };
        config.congestion_controller_factory(Arc::new(factory));
        config
    }

    /// Returns the idle timeout in quinn's type.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle_timeout.map(duration)
    }
}
