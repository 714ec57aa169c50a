//! What an echoed mark does to the window, by RFC 3168 section 6.1.2.

use bentpipe_types::Span;

use super::marked::{hear, sender_with, window};
use crate::{Habits, RecoveryKind};

const RECOVERIES: [RecoveryKind; 4] = [
    RecoveryKind::Reno,
    RecoveryKind::NewReno,
    RecoveryKind::Sack,
    RecoveryKind::Fack,
];

/// The peer echoes until it hears that the window was reduced, which the first new data say: the acknowledgment of all that was
/// sent before them echoes, too, and is of the same window. One for each segment comes by that place, every time.
#[test]
fn a_mark_reduces_the_window_once() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, Habits::RFC);
        for before in 1..=10 {
            hear(&mut tcp, before, None, true);
            assert_eq!(window(&tcp), 5, "{recovery:?}: {before}");
        }
        for before in 11..=15 {
            hear(&mut tcp, before, None, false);
        }
        assert_eq!(window(&tcp), 6, "{recovery:?}: it grows again");
    }
}

/// An echo after the peer has heard is of a mark of the reduced window.
#[test]
fn a_mark_of_a_later_window_reduces_it_again() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, Habits::RFC);
        for before in 1..=10 {
            hear(&mut tcp, before, None, true);
        }
        hear(&mut tcp, 11, None, true);
        assert_eq!(window(&tcp), 2, "{recovery:?}");
    }
}

/// A mark is heard of, then nothing for long. What is sent again can't say that the window was reduced, so that the peer goes on
/// to echo: slow start goes on all the same, or ten segments would go one a round trip.
#[test]
fn after_a_timeout_the_window_grows_whatever_is_echoed() {
    for recovery in RECOVERIES {
        let mut tcp = sender_with(recovery, Habits::RFC);
        hear(&mut tcp, 1, None, true);
        tcp.wait(Span::from_secs(2));
        assert!(tcp.tcp.statistics().timeouts > 0, "{recovery:?}");
        assert_eq!(window(&tcp), 1, "{recovery:?}");
        tcp.sent_ranges();
        for (before, expected) in [(2, 2), (3, 2)] {
            hear(&mut tcp, before, None, true);
            assert!(window(&tcp) >= expected, "{recovery:?}: {before}");
        }
    }
}
