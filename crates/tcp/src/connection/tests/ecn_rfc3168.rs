//! Reaction of the congestion window to ECE by RFC 3168 section 6.1.2.

use bentpipe_types::Span;

use super::ecn_linux::{acknowledge_segments, sender_with, window};
use crate::{LinuxQuirks, RecoveryKind};

const RECOVERIES: [RecoveryKind; 4] = [
    RecoveryKind::Reno,
    RecoveryKind::NewReno,
    RecoveryKind::Sack,
    RecoveryKind::Fack,
];

/// The peer sends ECE until it receives CWR on the first new data after the reduction.
/// Acknowledgments of all data sent before carry ECE too, and belong to the same window.
#[test]
fn a_mark_reduces_the_window_once() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, LinuxQuirks::NONE);
        for before in 1..=10 {
            acknowledge_segments(&mut tcp, before, None, true);
            assert_eq!(window(&tcp), 5, "{recovery:?}: {before}");
        }
        for before in 11..=15 {
            acknowledge_segments(&mut tcp, before, None, false);
        }
        assert_eq!(window(&tcp), 6, "{recovery:?}: it grows again");
    }
}

/// RFC 3168 section 6.1.2: ECE after the peer has received CWR reports a mark of the reduced
/// window.
#[test]
fn a_mark_of_the_next_window_reduces_it_again() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, LinuxQuirks::NONE);
        for before in 1..=10 {
            acknowledge_segments(&mut tcp, before, None, true);
        }
        acknowledge_segments(&mut tcp, 11, None, true);
        assert_eq!(window(&tcp), 2, "{recovery:?}");
    }
}

/// After a mark and a timeout, retransmissions cannot carry CWR, so the peer continues to send ECE.
/// Slow start continues in spite of it; otherwise ten segments would be retransmitted one per round
/// trip.
#[test]
fn slow_start_after_a_timeout_continues_despite_ece() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, LinuxQuirks::NONE);
        acknowledge_segments(&mut tcp, 1, None, true);
        tcp.wait(Span::from_secs(2));
        assert!(tcp.tcp.statistics().timeouts > 0, "{recovery:?}");
        assert_eq!(window(&tcp), 1, "{recovery:?}");
        tcp.sent_ranges();
        for (before, expected) in [(2, 2), (3, 2)] {
            acknowledge_segments(&mut tcp, before, None, true);
            assert!(window(&tcp) >= expected, "{recovery:?}: {before}");
        }
    }
}
