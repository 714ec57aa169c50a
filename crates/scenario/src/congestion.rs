//! What a window rule of your own is made of; [`CustomControls`](crate::CustomControls) takes it.

pub use bentpipe_tcp::congestion::{
    AckSample, Congestion, CongestionControl, CongestionSample, CustomFactory, Window,
};
pub use bentpipe_types::{BitRate, Span, Time};
