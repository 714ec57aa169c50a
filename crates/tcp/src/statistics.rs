//! Counters of a connection.

use bentpipe_types::{SpanStatistics, Time};
use serde::{Deserialize, Serialize};

use crate::sender_limits::LimitedTimes;

/// Counters of one connection, both directions. Plain integers, always on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Statistics {
    /// Retransmission timeouts (of data, SYN or FIN).
    pub timeouts: u64,
    /// Timeouts while a SYN or FIN, but no data, was outstanding; `timeouts` includes them.
    pub control_timeouts: u32,
    /// Path MTU probes: longer segments sent.
    pub path_mtu_probes: u32,
    /// Number of fast recoveries.
    pub fast_recoveries: u64,
    /// Tail loss probes sent (RFC 8985 section 7).
    pub loss_probes: u64,
    /// Timeouts and recoveries found to be spurious.
    pub spurious: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// ICMP errors about outstanding data.
    pub icmp_errors: u64,
    /// ICMP errors ignored, because they are not about outstanding data.
    pub icmp_ignored: u64,
    /// Number of reductions of the segment size by path MTU discovery.
    pub path_mtu_reductions: u64,
    /// Keep-alive probes sent.
    pub keep_alive_probes: u64,
    /// Segments received of which at least a part of the payload had been received before.
    pub duplicates_received: u64,
    /// Segments outside of the window, refused by PAWS, or acknowledging data never sent.
    pub unacceptable: u64,
    /// Accepted payload whose `payload_offset` contradicts its sequence number. Nonzero if a node
    /// on the path or one end corrupts the stream.
    pub payload_mismatches: u64,
    /// Cause and time of the end of the connection, if not closed by both ends.
    pub failure: Option<Failure>,
    /// Times during which this end's sending was limited, by cause.
    pub limited: LimitedTimes,
    /// Time of the first segment with payload sent.
    pub first_data_at: Option<Time>,
    /// Segments with payload sent, including retransmissions.
    pub segments_sent: u64,
    /// Bytes of our stream that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Duplicate acknowledgments received (RFC 5681 section 2).
    pub duplicate_acks: u64,
    /// SACK blocks ignored: of data never sent, or below the acknowledgment.
    pub sack_blocks_ignored: u64,
    /// Segments sent whose payload had been sent before completely.
    pub segments_retransmitted: u64,
    /// Round-trip times.
    pub rtt: SpanStatistics,
    /// Time of the last delivery to the application.
    pub last_delivery_at: Option<Time>,
    /// Out-of-order segments with payload received.
    pub out_of_order: u64,
    /// Bytes delivered to the application, in order.
    pub bytes_delivered: u64,
    /// Number of times that accepted payload was compared with its stream offset.
    pub ranges_checked: u64,
    /// Segments without payload sent: acknowledgments, SYN, FIN, RST.
    pub control_segments_sent: u64,
    /// Segments received, of any kind.
    pub segments_received: u64,
}

impl Statistics {
    /// Adds another connection's counters. Of first times the earlier is kept, of last times the
    /// later, and of failures the earlier.
    pub fn add(&mut self, other: &Self) {
        // Destructured without `..`, so that a new field is not forgotten.
        let Self {
            segments_sent,
            segments_retransmitted,
            control_segments_sent,
            segments_received,
            timeouts,
            control_timeouts,
            fast_recoveries,
            loss_probes,
            sack_blocks_ignored,
            spurious,
            window_probes,
            icmp_errors,
            icmp_ignored,
            path_mtu_reductions,
            path_mtu_probes,
            keep_alive_probes,
            duplicate_acks,
            bytes_delivered,
            bytes_acknowledged,
            first_data_at,
            last_delivery_at,
            duplicates_received,
            out_of_order,
            unacceptable,
            ranges_checked,
            payload_mismatches,
            failure,
            limited,
            rtt,
        } = other;
        self.segments_sent += segments_sent;
        self.segments_retransmitted += segments_retransmitted;
        self.control_segments_sent += control_segments_sent;
        self.segments_received += segments_received;
        self.timeouts += timeouts;
        self.control_timeouts += control_timeouts;
        self.fast_recoveries += fast_recoveries;
        self.loss_probes += loss_probes;
        self.sack_blocks_ignored += sack_blocks_ignored;
        self.spurious += spurious;
        self.window_probes += window_probes;
        self.icmp_errors += icmp_errors;
        self.icmp_ignored += icmp_ignored;
        self.path_mtu_reductions += path_mtu_reductions;
        self.path_mtu_probes += path_mtu_probes;
        self.keep_alive_probes += keep_alive_probes;
        self.duplicate_acks += duplicate_acks;
        self.bytes_delivered += bytes_delivered;
        self.bytes_acknowledged += bytes_acknowledged;
        self.duplicates_received += duplicates_received;
        self.out_of_order += out_of_order;
        self.unacceptable += unacceptable;
        self.ranges_checked += ranges_checked;
        self.payload_mismatches += payload_mismatches;
        let first = self.first_data_at.into_iter().chain(*first_data_at);
        self.first_data_at = first.min();
        self.last_delivery_at = self.last_delivery_at.max(*last_delivery_at);
        let failures = self.failure.into_iter().chain(*failure);
        self.failure = failures.min_by_key(|failure| failure.at);
        self.limited.add(limited);
        self.rtt.add(rtt);
    }
}

/// The abnormal end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Time at which this end detected it.
    pub at: Time,
    /// Its cause.
    pub why: FailureKind,
}

/// Cause of an abnormal end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FailureKind {
    /// The peer no longer answered (RFC 9293 section 3.8.3: R2).
    TimedOut,
    /// An ICMP error reported the peer unreachable, before the connection was established.
    Unreachable,
    /// The peer answered the SYN with a RST.
    Refused,
    /// The peer reset the connection.
    Reset,
}
