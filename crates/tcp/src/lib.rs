//! A TCP without input or output, per RFC 9293.
//!
//! A [`Connection`] is told what arrives and what time it is, and says what it wants to send and
//! when it next wants to run. It reads no clock, draws no random number, and allocates nothing per
//! packet. Three axes are separate and each is one file per algorithm:
//!
//! * [`recovery`]: what was lost, and what to send again;
//! * [`congestion`]: how much may be in flight;
//! * [`slow_start`]: how the window grows below the slow-start threshold.
//!
//! A [`Socket`] is a connection with the bytes it carries: none in a simulation, where a payload is a
//! range of its stream, rings of them where they are real. Hosts and gateways are made of it.
//!
//! Not modelled: the urgent pointer (urgent data is data), and taking a new SYN in TIME-WAIT (RFC 6191).

mod config;
pub mod congestion;
mod connection;
mod delivered;
mod habits;
mod limited;
mod options;
mod pacing;
mod rate_sample;
mod reassembly;
pub mod recovery;
mod right_sizing;
mod rtt;
mod send_sizing;
pub mod slow_start;
mod socket;
mod statistics;
#[cfg(test)]
mod testing;
mod ticks;

pub use config::{
    AvoidanceKind, BufferSizes, Config, EcnMode, HYSTART_LIMIT, IdleRestart, KeepAlive,
    NewRenoKind, PathMtuDiscovery, QuickAcks, RtoFrom, RtoRule,
};
pub use congestion::CongestionControlKind;
pub use connection::{
    Accepted, ActiveFastOpen, Admission, CongestionState, Connection, Events, Observed, Opening,
    PassiveFastOpen, PathLimit, Sender, State, TcpInfo, reset_reply,
};
pub use habits::Habits;
pub use limited::{Limit, LimitedTimes};
pub use options::TIMESTAMPS_LENGTH;
pub use pacing::PacingKind;
pub use rate_sample::{LossSample, RateSample, RecoveryPhase};
pub use recovery::RecoveryKind;
pub use right_sizing::memory_for;
pub use slow_start::SlowStartKind;
pub use socket::{
    CALL, Calls, Payload, Ranges, ReceiveBuffer, Rings, SendBuffer, Socket, Source, relay,
    relay_more,
};
pub use statistics::{Failure, FailureKind, Statistics};

pub(crate) use options::timestamp;
