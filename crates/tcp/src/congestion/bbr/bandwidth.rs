//! Bandwidth, and the bytes that it delivers in a time.

use bentpipe_types::Span;

/// Bytes per second.
pub(super) type Bandwidth = u64;

/// Returns the bytes that `bandwidth` delivers in `span`.
pub(super) fn bytes_delivered(bandwidth: Bandwidth, span: Span) -> f64 {
    bandwidth as f64 * span.as_secs_f64()
}

/// Returns the bytes, in whole segments, that `bandwidth` delivers in `span`.
pub(super) fn segments_of(bandwidth: Bandwidth, span: Span, segment: u32) -> u64 {
    let bytes = bytes_delivered(bandwidth, span) as u64;
    bytes - bytes % u64::from(segment.max(1))
}
