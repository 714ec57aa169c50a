//! Settings of a video call.

use bentpipe_types::Span;

use crate::Distribution;

/// Settings of a video call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VideoCallSettings {
    /// Minimum rate of the video in each direction in bit/s, RTP headers included (RMIN of RFC
    /// 8698).
    pub least_rate: u64,
    /// Maximum rate (RMAX of RFC 8698).
    pub most_rate: u64,
    /// Frames per second.
    pub frame_rate: u32,
    /// Maximum length of a datagram in bytes, RTP header included.
    pub datagram: u16,
    /// Duration of a call in seconds, or `None` until the end of the run.
    pub lasts: Option<Distribution>,
    /// Seconds from the end of a call to the next.
    pub pause: Distribution,
    /// Number of calls, or `None` until the end of the run.
    pub count: Option<u64>,
}

impl VideoCallSettings {
    /// Maximum number of packets of a frame: their index has 8 bits.
    pub const MOST_PACKETS: u64 = 255;

    /// Minimum of `datagram`: an RTP header and some video.
    pub const LEAST_DATAGRAM: u16 = 128;

    /// Returns the number of packets of the largest frame.
    #[must_use]
    pub fn packets_of_largest_frame(&self) -> u64 {
        let bytes = self.most_rate / 8 / u64::from(self.frame_rate.max(1));
        bytes.div_ceil(u64::from(self.datagram.max(1)))
    }

    /// Time from one frame to the next.
    pub(super) fn interval(&self) -> Span {
        Span::from_nanos(1_000_000_000 / u64::from(self.frame_rate.max(1)))
    }
}
