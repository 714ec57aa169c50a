//! Times of a sender's limits, as data.

use bentpipe_tcp::{Limit, LimitedTimes};
use bentpipe_types::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// Time in seconds during which each limit kept the sender from sending more. The sum is the time
/// during which any data were unsent or unacknowledged. For a flow with several connections, or two
/// senders, the times are added up and may exceed the duration of the run.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct LimitedSummary {
    /// Limited by the congestion window, in slow start.
    pub slow_start: f64,
    /// Limited by the congestion window, after slow start.
    pub congestion_window: f64,
    /// Limited by the window that the receiver advertised.
    pub receive_window: f64,
    /// Limited by the send buffer: all data that it can hold were sent.
    pub send_buffer: f64,
    /// Limited by the application: all data that it had written were sent.
    pub application: f64,
    /// Limited by the pacing rate.
    pub pacing: f64,
    /// In loss recovery: fast recovery, or recovery after a timeout.
    pub recovery: f64,
}

impl LimitedSummary {
    /// Creates the summary of a connection's sender at the time `ended`.
    #[must_use]
    pub fn new(times: &LimitedTimes, ended: Time) -> Self {
        let spent = |limit| times.spent(limit, ended).as_secs_f64();
        Self {
            slow_start: spent(Limit::SlowStart),
            congestion_window: spent(Limit::CongestionWindow),
            receive_window: spent(Limit::ReceiveWindow),
            send_buffer: spent(Limit::SendBuffer),
            application: spent(Limit::Application),
            pacing: spent(Limit::Pacing),
            recovery: spent(Limit::Recovery),
        }
    }
}
