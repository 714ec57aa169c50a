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

mod config;
pub mod congestion;
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

pub use config::{
    AvoidanceKind, BufferSizes, Config, EcnMode, HYSTART_LIMIT, IdleRestart, KeepAlive,
    NewRenoKind, PathMtuDiscovery, QuickAcks, RtoFrom, RtoRule,
};
pub use congestion::CongestionControlKind;
pub use connection::{
    Accepted, ActiveFastOpen, Admission, CongestionState, Connection, Events, Observed, Opening,
    PassiveFastOpen, PathLimit, Sender, State, TcpInfo, reset_reply,
};
pub use linux_quirks::LinuxQuirks;
pub use linux_ticks::HostClock;
pub use options::TIMESTAMPS_LENGTH;
pub use pacing::PacingKind;
pub use rate_sample::{LossSample, RateSample, RecoveryPhase};
pub use receive_buffer_autotuning::memory_for;
pub use recovery::RecoveryKind;
pub use sender_limits::{Limit, LimitedTimes};
pub use slow_start::SlowStartKind;
pub use socket::{
    CALL, Calls, Payload, Ranges, ReceiveBuffer, Rings, SendBuffer, Socket, Source, relay,
    relay_more,
};
pub use statistics::{Failure, FailureKind, Statistics};
