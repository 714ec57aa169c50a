use bentpipe_types::Span;

use super::super::scoreboard::Arrival;
use super::*;
use crate::{Habits, timestamp};

const SEGMENT: u64 = 1000;

/// A sender that has sent ten segments.
struct Flow {
    recovery: Counted,
    board: Scoreboard,
    send: SendSequence,
    now: Time,
    echo: Option<u32>,
}

impl Flow {
    fn new(segments: u64) -> Self {
        let config = Config {
            habits: Habits::LINUX,
            ..Config::default()
        };
        let mut flow = Self {
            recovery: Counted::new(&config),
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

    /// An acknowledgment of so many segments more, or a duplicate; what it means, and what it tells of.
    fn hear(&mut self, segments: u64) -> (Reaction, u64) {
        self.now += Span::from_millis(10);
        self.send.unacknowledged += segments * SEGMENT;
        let arrival = Arrival {
            now: self.now,
            ..Arrival::default()
        };
        self.board.acknowledge(self.send.unacknowledged, arrival);
        let duplicate = segments == 0;
        self.recovery.count(&self.send, &mut self.board, duplicate);
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
            last = self.hear(0).0;
        }
        last
    }

    /// What is sent again at once.
    fn again(&mut self) -> Vec<u64> {
        let mut segments = Vec::new();
        while let Some(again) = self.recovery.next_retransmit(&self.send, &mut self.board) {
            segments.push((again.position - 1) / SEGMENT);
            self.recovery
                .on_retransmitted(again.position, self.now, &mut self.board);
        }
        segments
    }

    fn timeout(&mut self) {
        let timeout = TimedOut {
            reduces: !self.recovery.is_reduced_for(&self.send),
            smoothed_rtt: None,
            now: self.now,
        };
        let again = self
            .recovery
            .on_timeout(&timeout, &self.send, &mut self.board);
        assert_eq!(again, Again::Marked);
    }

    fn in_flight(&self) -> u64 {
        self.recovery.in_flight(&self.send, &self.board) / SEGMENT
    }
}

const ENTERS: Reaction = Reaction::Enter {
    flight_size: 10 * SEGMENT,
};
const GOES_ON: Reaction = Reaction::Partial {
    restart_timer: true,
};

#[test]
fn a_duplicate_counts_as_a_segment_that_has_arrived() {
    let mut flow = Flow::new(10);
    assert_eq!(flow.hear(0), (Reaction::Hold, 1));
    assert_eq!(flow.hear(0), (Reaction::Hold, 1));
    assert_eq!(flow.in_flight(), 8);
    assert_eq!(flow.hear(0), (ENTERS, 1));
    assert_eq!(flow.in_flight(), 6, "three arrived, and one lost");
    assert_eq!(flow.again(), [0]);
    assert_eq!(flow.in_flight(), 7);
    // It fills the hole; three of the others are known of. The next is missing, too.
    assert_eq!(flow.hear(5), (GOES_ON, 2));
    assert_eq!(flow.again(), [5]);
    assert_eq!(flow.in_flight(), 5);
}

#[test]
fn no_more_has_arrived_than_is_outstanding_and_not_missing() {
    let mut flow = Flow::new(3);
    assert_eq!(flow.duplicates(2), Reaction::Hold);
    assert_eq!(flow.hear(0), (Reaction::Hold, 0), "one of three is missing");
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (1, 3));
    // Of ten, none was missing: so many duplicates tell of reordering by ten.
    let mut flow = Flow::new(10);
    assert_eq!(flow.duplicates(3), ENTERS);
    assert_eq!(flow.duplicates(7), Reaction::Hold);
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (0, 10));
}

#[test]
fn recovery_is_held_until_more_is_acknowledged() {
    let mut flow = Flow::new(10);
    flow.duplicates(3);
    flow.again();
    flow.send(4);
    assert_eq!(flow.hear(10).0, GOES_ON);
    assert!(flow.recovery.is_recovering());
    assert!(
        !flow.recovery.is_reduced_for(&flow.send),
        "a timeout would be a new sign"
    );
    assert_eq!(flow.duplicates(3), Reaction::Hold);
    assert_eq!((flow.in_flight(), flow.again()), (4, vec![]));
    assert_eq!(flow.hear(1).0, Reaction::Exit { limit: None });
    assert!(!flow.recovery.is_recovering());
}

#[test]
fn after_a_timeout_duplicates_tell_of_what_was_sent_since() {
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
    assert_eq!(flow.hear(0), (Reaction::Hold, 0));
    // F-RTO: two new ones go out, and tell.
    assert_eq!(flow.hear(1), (Reaction::Grow, 1));
    assert!(!flow.recovery.wants_retransmit(&flow.board));
    flow.send(5);
    assert_eq!(flow.hear(0), (Reaction::Hold, 1));
    assert_eq!(flow.again(), (1..10).collect::<Vec<_>>());
    assert_eq!(flow.duplicates(3), Reaction::Hold);
    // All of before is there: that is held. With one more, what duplicates have told of counts.
    assert_eq!(flow.hear(9), (Reaction::Grow, 5));
    assert_eq!(flow.in_flight(), 5);
    assert_eq!(flow.hear(1).0, Reaction::Grow);
    assert!(flow.recovery.is_quiet(&flow.send, &flow.board));
}

#[test]
fn duplicates_of_before_a_recovery_was_over_begin_the_next() {
    let mut flow = Flow::new(3);
    flow.timeout();
    flow.again();
    flow.hear(1);
    flow.send(9);
    flow.duplicates(6);
    assert_eq!(flow.hear(2), (Reaction::Grow, 1));
    assert_eq!(
        flow.hear(1).0,
        Reaction::Enter {
            flight_size: 9 * SEGMENT
        }
    );
    assert_eq!(flow.again(), [4]);
}

#[test]
fn f_rto_finds_a_timeout_needless_by_what_was_sent_once() {
    let mut flow = Flow::new(10);
    flow.timeout();
    let first = flow.recovery.next_retransmit(&flow.send, &mut flow.board);
    assert!(first.is_some_and(|again| again.position == 1));
    flow.recovery.on_retransmitted(1, flow.now, &mut flow.board);
    assert_eq!(flow.hear(1).0, Reaction::Grow);
    flow.send(2);
    assert_eq!(flow.hear(1).0, Reaction::Undo);
    assert_eq!((flow.in_flight(), flow.again()), (10, vec![]));
}

#[test]
fn what_comes_late_takes_the_reduction_back_and_raises_the_reordering() {
    let mut flow = Flow::new(10);
    let sent = timestamp(flow.now);
    assert_eq!(flow.duplicates(6), Reaction::Hold);
    assert_eq!(flow.again(), [0]);
    flow.echo = Some(sent);
    assert_eq!(flow.hear(6).0, Reaction::Undo);
    assert_eq!((flow.in_flight(), flow.recovery.reordering), (3, 6));
}
