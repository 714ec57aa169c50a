//! Congestion control: the window rules, which limit the bytes in flight.
//!
//! A rule processes acknowledgments and congestion events and changes a [`Window`]. Detection and
//! retransmission of lost data are in [`recovery`](crate::recovery).
//!
//! RFC 9293 section 3.8.2 requires slow start, congestion avoidance and exponential backoff.

#[cfg(test)]
mod ack_clock;
mod ack_spacing;
mod bandwidth;
mod bbr;
mod built_in;
mod careful_resume;
mod controller;
mod cubic;
mod cubic_linux;
mod custom;
mod enhanced_hybla;
mod external;
mod hybla;
#[cfg(test)]
mod kernel_rules;
mod reno;
mod rules;
mod settings;
mod westwood;

pub use crate::congestion_control::{
    AckSample, Congestion, CongestionControl, CongestionSample, Window,
};
pub use bbr::{Bbr1, Bbr3};
use built_in::BuiltIn;
pub use built_in::{RuleFacts, RuleFamily};
pub use careful_resume::SavedPath;
pub(crate) use careful_resume::careful_resume;
pub(crate) use controller::Controller;
pub use cubic::Cubic;
pub use cubic_linux::LinuxCubic;
pub use custom::CustomFactory;
pub use enhanced_hybla::EnhancedHybla;
pub use external::ExternalWindow;
pub use hybla::Hybla;
pub use reno::Reno;
pub use rules::{CongestionControlKind, WindowRule};
pub(crate) use settings::CongestionSettings;
pub use settings::{
    AfterLoss, AfterTimeout, AvoidanceKind, BandwidthFilter, ChannelCapacity, HyblaSettings,
    InitialThreshold, WestwoodAfterLoss, WestwoodSettings,
};
pub use westwood::{Westwood, Westwood2001};
