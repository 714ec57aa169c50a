//! Types for a congestion control algorithm of your own, to add to
//! [`CustomControls`](crate::CustomControls).

pub use bentpipe_tcp::congestion::{
    AckSample, Congestion, CongestionControl, CongestionSample, CustomFactory, Window,
};
pub use bentpipe_types::{BitRate, Span, Time};
