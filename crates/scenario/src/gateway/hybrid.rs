//! Hybrid gateways.

use bentpipe_gateway::hybrid::{self, Hybrid};
use bentpipe_sim::NetworkBuilder;
use bentpipe_types::{Bytes, Gauge, Span};
use serde_json::{Value, json};

use crate::fault::{Fault, fault};
use crate::gateway::parts::{
    Crash, GatewayContext, IDLE_TIMEOUT, LEAST_MEMORY, MEMORY, MOST_MEMORY, SHORTEST_IDLE_TIMEOUT,
    buffer, crashes, facing,
};
use crate::gateway::schema::{AnticipationName, GatewayFile, GatewayKind};
use crate::gateway::settings::{
    GatewayFacts, GatewaySettings, Names, Place, RealLinks, crashes_data, with_crashes,
};
use crate::node::processing::{Processing, engine_processing, processing_data, resolve_processing};
use crate::quantity::buffer::Buffer;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::run::error::RunError;
use crate::station_error::StationError;
use crate::tcp::build::tcp_config;
use crate::tcp::resolve::{TcpDefaults, resolve_tcp};
use crate::tcp::settings::{TcpSettings, tcp_data};

const RECEIVE_BUFFER: Bytes = Bytes::new(64_000);
/// Minimum receive buffer: a segment must fit.
const LEAST_RECEIVE_BUFFER: u64 = 2_000;
/// Maximum receive buffer: about the largest window with 16 bits and a shift of 14 (RFC 7323
/// section 2.3).
const MOST_RECEIVE_BUFFER: u64 = 1_000_000_000;
const ACK_TIMEOUT: Span = Span::from_millis(200);
/// Longest delay of an acknowledgment (RFC 9293 section 3.8.6.3).
const LONGEST_ACK_TIMEOUT: Span = Span::from_millis(500);
const RETRANSMISSION_TIMEOUT: Span = Span::from_millis(200);
const SHORTEST_RETRANSMISSION_TIMEOUT: Span = Span::from_millis(10);
const LONGEST_RETRANSMISSION_TIMEOUT: Span = Span::from_secs(60);
const GIVE_UP: Span = Span::from_secs(120);
const SHORTEST_GIVE_UP: Span = Span::from_secs(1);
const CONNECTIONS: u32 = 65_536;
const MOST_CONNECTIONS: u32 = 1_000_000;

/// A hybrid gateway. [`GatewayFile`](crate::schema::GatewayFile) describes each setting.
#[derive(Clone, PartialEq, Debug)]
pub struct HybridGateway {
    /// Index of the link to its hosts, which ends at this gateway.
    pub facing: usize,
    /// Receive window advertised to servers.
    pub receive_buffer: Bytes,
    /// Most bytes stored of one connection.
    pub store: Bytes,
    /// Most bytes stored of all connections.
    pub memory: Bytes,
    /// Most connections that it handles.
    pub connections: u32,
    /// Longest delay of an acknowledgment.
    pub ack_timeout: Span,
    /// Number of segments acknowledged at once, or `None` if only the delay decides.
    pub ack_every: Option<u32>,
    /// How far beyond a host's window it sends.
    pub anticipation: Anticipation,
    /// TCP towards the hosts, or `None` for the paper's timer.
    pub tcp: Option<TcpSettings>,
    /// Whether that TCP has a congestion window.
    pub congestion_window: bool,
    /// Fixed retransmission timeout, or `None` for an adaptive one.
    pub retransmission_timeout: Option<Span>,
    /// Time without progress after which a host is given up.
    pub give_up: Span,
    /// Idle time after which a connection is forgotten.
    pub idle_timeout: Span,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
    /// Crashes in order.
    pub crashes: Vec<Crash>,
}

/// How far beyond a host's window a hybrid gateway sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Anticipation {
    /// Without a limit.
    Unlimited,
    /// Not beyond the window.
    Strict,
    /// This multiple of the window.
    Factor(f64),
}

impl GatewaySettings for HybridGateway {
    const FACTS: GatewayFacts = GatewayFacts {
        ends_connections: false,
        acknowledges: true,
    };
    const PROBES: Option<(&'static str, &'static [Gauge])> = Some((
        ": over all connections, and of the one with the latest packet",
        hybrid::GAUGES,
    ));

    fn resolve(
        name: &str,
        file: &GatewayFile,
        node: usize,
        around: &GatewayContext<'_>,
    ) -> Result<Self, Fault> {
        let facing = facing(name, file, node, around)?;
        let read = Reader { name };
        let receive_buffer = read.size(
            ("receive_buffer", file.receive_buffer, RECEIVE_BUFFER),
            (LEAST_RECEIVE_BUFFER, MOST_RECEIVE_BUFFER),
            r#""2 kB" to "1 GB""#,
        )?;
        let store = read.size(
            ("store", file.store, receive_buffer),
            (LEAST_RECEIVE_BUFFER, MOST_MEMORY),
            r#""2 kB" to "1024 GiB""#,
        )?;
        let memory = read.size(
            ("memory", file.memory, MEMORY),
            (LEAST_MEMORY, MOST_MEMORY),
            r#""256 KiB" to "1024 GiB""#,
        )?;
        let ack_timeout = read.length(
            ("ack_timeout", file.ack_timeout, ACK_TIMEOUT),
            (Span::ZERO, LONGEST_ACK_TIMEOUT),
            r#"at most "500 ms""#,
        )?;
        let give_up = read.length(
            ("give_up", file.give_up, GIVE_UP),
            (SHORTEST_GIVE_UP, Span::from_secs(u64::MAX / 2_000_000_000)),
            r#"at least "1 s""#,
        )?;
        let idle_timeout = read.length(
            ("idle_timeout", file.idle_timeout, IDLE_TIMEOUT),
            (
                SHORTEST_IDLE_TIMEOUT,
                Span::from_secs(u64::MAX / 2_000_000_000),
            ),
            r#"at least "1 s""#,
        )?;
        let connections = file.connections.unwrap_or(CONNECTIONS);
        if !(1..=MOST_CONNECTIONS).contains(&connections) {
            let message = format!("expected 1 to {MOST_CONNECTIONS}, got {connections}");
            return Err(read.fault("connections", message));
        }
        if file.ack_every == Some(0) {
            let message = "expected 1 at least, got 0".to_owned();
            return Err(read.fault("ack_every", message));
        }
        Ok(Self {
            facing,
            receive_buffer,
            store,
            memory,
            connections,
            ack_timeout,
            ack_every: file.ack_every,
            anticipation: anticipation(&read, file)?,
            tcp: match &file.tcp {
                None => None,
                Some(file) => {
                    let buffer = buffer(&around.links[facing]);
                    let defaults = TcpDefaults {
                        send_buffer: Buffer::Of(Size(buffer)),
                        receive_buffer: Buffer::Of(Size(buffer)),
                        nagle: false,
                        ip: around.ip,
                    };
                    let keys = ["gateways", name, "tcp"];
                    Some(resolve_tcp(keys, file, defaults, around.custom)?)
                }
            },
            congestion_window: congestion_window(&read, file)?,
            retransmission_timeout: retransmission_timeout(&read, file)?,
            give_up,
            idle_timeout,
            processing: resolve_processing("gateways", name, file.processing.as_ref())?,
            crashes: crashes(name, file)?,
        })
    }

    fn measured(&self, names: &Names<'_>) -> Value {
        json!({
            "kind": GatewayKind::Hybrid,
            "facing": (names.link)(self.facing),
            "receive_buffer_bytes": self.receive_buffer.get(),
            "store_bytes": self.store.get(),
            "memory_bytes": self.memory.get(),
            "connections": self.connections,
            "ack_timeout_s": self.ack_timeout.as_secs_f64(),
            "ack_every": self.ack_every,
            "anticipation": match self.anticipation {
                Anticipation::Unlimited => json!("unlimited"),
                Anticipation::Strict => json!("strict"),
                Anticipation::Factor(factor) => json!(factor),
            },
            "tcp": self.tcp.as_ref().map(tcp_data),
            "congestion_window": self.tcp.is_some() && self.congestion_window,
            "retransmission_timeout_s": self.retransmission_timeout.map(Span::as_secs_f64),
            "give_up_s": self.give_up.as_secs_f64(),
            "idle_timeout_s": self.idle_timeout.as_secs_f64(),
            "processing": processing_data(self.processing),
            "crashes": crashes_data(&self.crashes),
        })
    }

    fn put(&self, place: &Place<'_>, builder: &mut NetworkBuilder) -> Result<(), RunError> {
        let agent = with_crashes(Hybrid::new(self.engine(place)?), &self.crashes);
        builder.replace(place.node, agent);
        Ok(())
    }

    fn between_real_links(&self, station: &mut RealLinks<'_>) -> Result<Self, StationError> {
        let mut hybrid = self.clone();
        hybrid.facing = station.facing(self.facing)?;
        if hybrid.processing.take().is_some() {
            station.note_processing();
        }
        Ok(hybrid)
    }
}

impl HybridGateway {
    /// Returns its settings in the engine.
    fn engine(&self, place: &Place<'_>) -> Result<hybrid::Settings, RunError> {
        Ok(hybrid::Settings {
            facing: (place.ports)(self.facing),
            facing_mtu: (place.mtu)(self.facing, true),
            receive_buffer: self.receive_buffer.get(),
            store: Some(self.store.get()),
            memory: self.memory.get(),
            connections: self.connections as usize,
            ack_timeout: self.ack_timeout,
            ack_every: self.ack_every,
            anticipation: match self.anticipation {
                Anticipation::Unlimited => hybrid::Anticipation::Unlimited,
                Anticipation::Strict => hybrid::Anticipation::Strict,
                Anticipation::Factor(factor) => hybrid::Anticipation::Factor(factor),
            },
            recovery: match &self.tcp {
                None => hybrid::Recovery::Timer,
                Some(tcp) => hybrid::Recovery::Tcp {
                    config: Box::new(tcp_config(tcp, place.custom)?),
                    congestion_window: self.congestion_window,
                },
            },
            retransmission_timeout: self.retransmission_timeout,
            give_up: self.give_up,
            idle: self.idle_timeout,
            processing: self.processing.map(engine_processing),
            ..hybrid::Settings::default()
        })
    }
}

struct Reader<'a> {
    name: &'a str,
}

impl Reader<'_> {
    fn fault(&self, key: &str, message: String) -> Fault {
        fault(&["gateways", self.name, key], message)
    }

    fn size(
        &self,
        (key, given, default): (&str, Option<Size>, Bytes),
        (least, most): (u64, u64),
        expected: &str,
    ) -> Result<Bytes, Fault> {
        let size = given.unwrap_or(Size(default));
        if !(least..=most).contains(&size.0.get()) {
            return Err(self.fault(key, format!(r#"expected {expected}, got "{size}""#)));
        }
        Ok(size.0)
    }

    fn length(
        &self,
        (key, given, default): (&str, Option<Length>, Span),
        (least, most): (Span, Span),
        expected: &str,
    ) -> Result<Span, Fault> {
        let length = given.unwrap_or(Length(default));
        if length.0 < least || length.0 > most {
            return Err(self.fault(key, format!(r#"expected {expected}, got "{length}""#)));
        }
        Ok(length.0)
    }
}

fn anticipation(read: &Reader<'_>, file: &GatewayFile) -> Result<Anticipation, Fault> {
    match (file.anticipation, file.window_factor) {
        (Some(_), Some(_)) => {
            let message = "has no effect together with `anticipation`".to_owned();
            Err(read.fault("window_factor", message))
        }
        (_, Some(factor)) if !(1.0..=1e6).contains(&factor) => {
            let message = format!("expected 1 to 1000000, got {factor}");
            Err(read.fault("window_factor", message))
        }
        (_, Some(factor)) => Ok(Anticipation::Factor(factor)),
        (Some(AnticipationName::Strict), None) => Ok(Anticipation::Strict),
        (Some(AnticipationName::Unlimited) | None, None) => Ok(Anticipation::Unlimited),
    }
}

fn congestion_window(read: &Reader<'_>, file: &GatewayFile) -> Result<bool, Fault> {
    if file.congestion_window.is_some() && file.tcp.is_none() {
        let message = "has no effect without `tcp`: the timer alone has no congestion window";
        return Err(read.fault("congestion_window", message.to_owned()));
    }
    Ok(file.congestion_window.unwrap_or(true))
}

fn retransmission_timeout(read: &Reader<'_>, file: &GatewayFile) -> Result<Option<Span>, Fault> {
    let adaptive = file
        .adaptive_timeout
        .unwrap_or(file.tcp.is_some() && file.retransmission_timeout.is_none());
    if adaptive && file.retransmission_timeout.is_some() {
        let message = "has no effect together with `adaptive_timeout`".to_owned();
        return Err(read.fault("retransmission_timeout", message));
    }
    let timeout = read.length(
        (
            "retransmission_timeout",
            file.retransmission_timeout,
            RETRANSMISSION_TIMEOUT,
        ),
        (
            SHORTEST_RETRANSMISSION_TIMEOUT,
            LONGEST_RETRANSMISSION_TIMEOUT,
        ),
        r#""10 ms" to "60 s""#,
    )?;
    Ok((!adaptive).then_some(timeout))
}
