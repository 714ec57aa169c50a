//! A TCP implementation without input or output, per RFC 9293.
//!
//! A [`Connection`] receives packets and the current time as arguments. It emits packets and
//! reports when it next wants to run. It reads no clock, draws no random number, and allocates
//! nothing per packet. Three aspects are independent of each other, with one file per algorithm:
//!
//! * [`recovery`]: which data was lost, and what to retransmit;
//! * [`congestion`]: how much data may be in flight;
//! * [`slow_start`]: how the window grows below the slow-start threshold.
//!
//! A [`Socket`] is a connection together with its payload. In a simulation the payload is only a
//! range of stream offsets; with real data it is held in ring buffers. Hosts and gateways are built
//! on it.
//!
//! Not modelled: the urgent pointer of RFC 9293 section 3.8.5 (urgent data is treated as ordinary
//! data), and accepting a new SYN in TIME-WAIT (RFC 6191).
//!
//! A handshake, with the packets carried by hand (`examples/two_endpoints.rs` transfers data):
//!
//! ```
//! use bentpipe_tcp::{Config, Connection, State};
//! use bentpipe_types::{Address, Endpoint, Port, RandomStream, Seq, World};
//!
//! let mut world = World::new(RandomStream::new(1, "example", "network"));
//! let [ship, shore] = [(1, 40_000), (2, 80)].map(|(address, port)| Endpoint {
//!     address: Address(address),
//!     port,
//! });
//! let config = Config::default();
//! let (egress, first) = (Port(0), Seq::new(1_000));
//!
//! let mut client = Connection::connect(&config, ship, shore, egress, first, &mut world.cx());
//! let (_, syn) = world.outbox.pop().expect("a SYN");
//! let mut server = Connection::accept(&config, shore, ship, egress, first, syn, &mut world.cx());
//! let (_, syn_ack) = world.outbox.pop().expect("a SYN-ACK");
//! client.on_packet(syn_ack, &mut world.cx());
//! let (_, ack) = world.outbox.pop().expect("an ACK");
//! server.on_packet(ack, &mut world.cx());
//! assert_eq!([client.state(), server.state()], [State::Established; 2]);
//! ```

mod config;
pub mod congestion;
mod congestion_control;
mod connection;
mod delivered_estimate;
mod linux_quirks;
mod linux_ticks;
mod options;
mod pacing;
mod rate_sample;
mod reassembly;
mod receive_buffer_autotuning;
pub mod recovery;
mod rtt;
mod send_buffer_autotuning;
mod sender_limits;
pub mod slow_start;
mod socket;
mod statistics;
#[cfg(test)]
mod testing;
mod write_calls;

pub use config::{
    BufferSizes, Config, EcnMode, HYSTART_LIMIT, IdleRestart, KeepAlive, NewRenoKind,
    PathMtuDiscovery, QuickAcks, RtoFrom, RtoRule,
};
pub use congestion::{AvoidanceKind, CongestionControlKind};
pub use connection::{
    Accepted, ActiveFastOpen, Admission, CongestionState, Connection, Events, Observed, Opening,
    PassiveFastOpen, PathLimit, Sender, State, TcpInfo, reset_reply,
};
pub use linux_quirks::{
    AcceptanceQuirks, AckQuirks, HandshakeQuirks, LinuxQuirks, RecoveryQuirks, SendingQuirks,
    TimerQuirks, WindowQuirks,
};
pub use linux_ticks::HostClock;
pub use options::TIMESTAMPS_LENGTH;
pub use pacing::PacingKind;
pub use rate_sample::{LossSample, RateSample, RecoveryPhase};
pub use receive_buffer_autotuning::memory_for;
pub use recovery::RecoveryKind;
pub use rtt::GRANULE;
pub use sender_limits::{Limit, LimitedTimes};
pub use slow_start::SlowStartKind;
pub use socket::{
    Payload, Ranges, RealHeader, ReceiveBuffer, Rings, SendBuffer, Socket, Source,
    free_spare_buffers, relay, relay_more,
};
pub use statistics::{Failure, FailureKind, Statistics};
pub use write_calls::{CALL, Calls};
