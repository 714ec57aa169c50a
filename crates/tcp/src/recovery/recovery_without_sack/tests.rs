use bentpipe_types::Span;

use super::super::scoreboard::Arrival;
use super::*;
use crate::{HostClock, LinuxQuirks};

const SEGMENT: u64 = 1000;

/// A sender that has sent some segments.
struct Flow {
    recovery: RecoveryWithoutSack,
    board: Scoreboard,
    send: SendSequence,
    now: Time,
    echo: Option<u32>,
}

impl Flow {
    fn new(segments: u64) -> Self {
        let config = Config {
            linux_quirks: LinuxQuirks::ALL,
            ..Config::default()
        };
        let mut flow = Self {
            recovery: RecoveryWithoutSack::new(&config),
            board: Scoreboard::new(),
            send: SendSequence {
                unacknowledged: 1,
                next: 1,
                highest: 1,
                segment: SEGMENT as u32,
            },
            now: Time::ZERO + Span::from_millis(1),
            echo: None,
        };
        flow.send(segments);
        flow
    }

    fn send(&mut self, segments: u64) {
        for _ in 0..segments {
            let end = self.send.next + SEGMENT;
            self.board.push(self.send.next, end, self.now);
            self.send.next = end;
            self.send.highest = end;
        }
    }

    /// Processes an acknowledgment of `segments` more segments, or a duplicate if 0. Returns the
    /// reaction, and the number of segments newly reported as delivered.
    fn acknowledge(&mut self, segments: u64) -> (Reaction, u64) {
        self.now += Span::from_millis(10);
        self.send.unacknowledged += segments * SEGMENT;
        let arrival = Arrival {
            now: self.now,
            ..Arrival::default()
        };
        self.board.acknowledge(self.send.unacknowledged, arrival);
        let duplicate = segments == 0;
        self.recovery
            .count_duplicates(&self.send, &mut self.board, duplicate);
        let delivered = self.board.delivered().bytes() / SEGMENT;
        let ack = Acknowledgment {
            acknowledged: segments * SEGMENT,
            duplicate,
            now: self.now,
            echo: self.echo,
            smoothed_rtt: None,
            can_send_new: true,
            one_more: false,
        };
        let reaction = self.recovery.on_ack(&ack, &self.send, &mut self.board);
        (reaction, delivered)
    }

    fn duplicates(&mut self, count: u64) -> Reaction {
        let mut last = Reaction::Hold;
        for _ in 0..count {
            last = self.acknowledge(0).0;
        }
        last
    }

    /// Retransmits all segments that are to be retransmitted. Returns them.
    fn retransmit(&mut self) -> Vec<u64> {
        let mut segments = Vec::new();
        while let Some(retransmit) = self.recovery.next_retransmit(&self.send, &mut self.board) {
            segments.push((retransmit.position - 1) / SEGMENT);
            self.recovery
                .on_retransmitted(retransmit.position, self.now, &mut self.board);
        }
        segments
    }

    fn timeout(&mut self) {
        let timeout = TimedOut {
            reduces: !self.recovery.is_reduced_for(&self.send),
            smoothed_rtt: None,
            now: self.now,
        };
        let retransmit = self
            .recovery
            .on_timeout(&timeout, &self.send, &mut self.board);
        assert_eq!(retransmit, RetransmitScope::Marked);
    }

    fn in_flight(&self) -> u64 {
        self.recovery.in_flight(&self.send, &self.board) / SEGMENT
    }
}

const ENTERS: Reaction = Reaction::Enter {
    flight_size: 10 * SEGMENT,
};
const CONTINUES: Reaction = Reaction::Partial {
    restart_timer: true,
};

#[test]
fn a_duplicate_counts_as_a_delivered_segment() {
    let mut flow = Flow::new(10);
    assert_eq!(flow.acknowledge(0), (Reaction::Hold, 1));
    assert_eq!(flow.acknowledge(0), (Reaction::Hold, 1));
    assert_eq!(flow.in_flight(), 8);
    assert_eq!(flow.acknowledge(0), (ENTERS, 1));
    assert_eq!(flow.in_flight(), 6, "three delivered and one lost");
    assert_eq!(flow.retransmit(), [0]);
    assert_eq!(flow.in_flight(), 7);
    // The acknowledgment covers the lost segment, three counted before, and one more. The next is
    // missing too.
    assert_eq!(flow.acknowledge(5), (CONTINUES, 2));
    assert_eq!(flow.retransmit(), [5]);
    assert_eq!(flow.in_flight(), 5);
}

#[test]
fn duplicates_are_limited_by_the_outstanding_segments() {
    let mut flow = Flow::new(3);
    assert_eq!(flow.duplicates(2), Reaction::Hold);
    assert_eq!(
        flow.acknowledge(0),
        (Reaction::Hold, 0),
        "one of three is missing"
    );
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (1, 3));
    // None of ten was missing: this many duplicates indicate a reordering degree of ten.
    let mut flow = Flow::new(10);
    assert_eq!(flow.duplicates(3), ENTERS);
    assert_eq!(flow.duplicates(7), Reaction::Hold);
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (0, 10));
}

#[test]
fn recovery_is_held_until_more_is_acknowledged() {
    let mut flow = Flow::new(10);
    flow.duplicates(3);
    flow.retransmit();
    flow.send(4);
    assert_eq!(flow.acknowledge(10).0, CONTINUES);
    assert!(flow.recovery.is_recovering());
    assert!(
        !flow.recovery.is_reduced_for(&flow.send),
        "a timeout would be a new sign of congestion"
    );
    assert_eq!(flow.duplicates(3), Reaction::Hold);
    assert_eq!((flow.in_flight(), flow.retransmit()), (4, vec![]));
    assert_eq!(flow.acknowledge(1).0, Reaction::Exit { limit: None });
    assert!(!flow.recovery.is_recovering());
}

#[test]
fn after_a_timeout_duplicates_count_for_data_sent_since() {
    let mut flow = Flow::new(10);
    flow.timeout();
    assert_eq!(flow.in_flight(), 0);
    assert_eq!(
        flow.recovery.next_retransmit(&flow.send, &mut flow.board),
        {
            Some(Retransmission {
                position: 1,
                length: Some(SEGMENT as u32),
                regardless_of_window: true,
                restarts_timer: true,
            })
        }
    );
    flow.recovery.on_retransmitted(1, flow.now, &mut flow.board);
    assert_eq!(flow.acknowledge(0), (Reaction::Hold, 0));
    // F-RTO: new segments are sent, and their acknowledgments decide.
    assert_eq!(flow.acknowledge(1), (Reaction::Grow, 1));
    assert!(!flow.recovery.wants_retransmit(&flow.board));
    flow.send(5);
    assert_eq!(flow.acknowledge(0), (Reaction::Hold, 1));
    assert_eq!(flow.retransmit(), (1..10).collect::<Vec<_>>());
    assert_eq!(flow.duplicates(3), Reaction::Hold);
    // All earlier data is acknowledged, which is held. With one more acknowledged, the duplicates
    // count.
    assert_eq!(flow.acknowledge(9), (Reaction::Grow, 5));
    assert_eq!(flow.in_flight(), 5);
    assert_eq!(flow.acknowledge(1).0, Reaction::Grow);
    assert!(flow.recovery.is_loss_free(&flow.send, &flow.board));
}

#[test]
fn duplicates_from_before_the_end_of_recovery_begin_the_next() {
    let mut flow = Flow::new(3);
    flow.timeout();
    flow.retransmit();
    flow.acknowledge(1);
    flow.send(9);
    flow.duplicates(6);
    assert_eq!(flow.acknowledge(2), (Reaction::Grow, 1));
    assert_eq!(
        flow.acknowledge(1).0,
        Reaction::Enter {
            flight_size: 9 * SEGMENT
        }
    );
    assert_eq!(flow.retransmit(), [4]);
}

#[test]
fn f_rto_detects_a_spurious_timeout() {
    let mut flow = Flow::new(10);
    flow.timeout();
    let first = flow.recovery.next_retransmit(&flow.send, &mut flow.board);
    assert!(first.is_some_and(|retransmit| retransmit.position == 1));
    flow.recovery.on_retransmitted(1, flow.now, &mut flow.board);
    assert_eq!(flow.acknowledge(1).0, Reaction::Grow);
    flow.send(2);
    assert_eq!(flow.acknowledge(1).0, Reaction::Undo);
    assert_eq!((flow.in_flight(), flow.retransmit()), (10, vec![]));
}

#[test]
fn a_late_original_undoes_the_reduction_and_raises_the_reordering_degree() {
    let mut flow = Flow::new(10);
    let sent = HostClock::default().timestamp(flow.now);
    assert_eq!(flow.duplicates(6), Reaction::Hold);
    assert_eq!(flow.retransmit(), [0]);
    flow.echo = Some(sent);
    assert_eq!(flow.acknowledge(6).0, Reaction::Undo);
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (3, 6));
}
