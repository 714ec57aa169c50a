use bentpipe_types::{SackBlock, SackBlocks, Seq, Span, Time};
use proptest::prelude::*;

use super::reference::{Naive, Record};
use super::*;

/// Near the maximum, so that sequence numbers wrap.
const INITIAL: Seq = Seq::new(0xffff_f000);

fn wire(position: u64) -> Seq {
    INITIAL + position as u32
}

fn block(start: u64, end: u64) -> SackBlock {
    SackBlock {
        start: wire(start),
        end: wire(end),
    }
}

fn blocks(ranges: &[(u64, u64)]) -> SackBlocks {
    ranges
        .iter()
        .map(|&(start, end)| block(start, end))
        .collect()
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

fn arrival(milliseconds: u64) -> Arrival {
    Arrival {
        now: at(milliseconds),
        ..Arrival::default()
    }
}

/// Processes the SACK blocks of an acknowledgment, on the fast path if possible. Returns whether it
/// was.
fn process_blocks(board: &mut Scoreboard, ranges: &[(u64, u64)], una: u64, highest: u64) -> bool {
    let blocks = blocks(ranges);
    let covered = board.one_more_segment(blocks.as_slice(), una, highest);
    match covered {
        Some(covered) => board.sack_one_more(covered),
        None => board.sack(blocks.as_slice(), una, wire(una), highest),
    }
    covered.is_some()
}

/// Loss detection in the reference implementation and the scoreboard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Sacked,
    Forward,
    Time,
}

#[derive(Clone, Debug)]
enum Operation {
    /// Sends segments of these lengths.
    Send(Vec<u32>),
    /// An acknowledgment and its SACK blocks as (start, length), in shares of the outstanding data,
    /// snapped to segment boundaries or not.
    Acknowledge(f64, Vec<(f64, f64)>, bool),
    /// Repeats the last blocks, with the first extended to this share of the outstanding data.
    Grow(f64),
    /// SACKs one more segment, this many segments behind the highest one SACKed.
    Next(usize),
    /// Retransmits this many lost segments.
    Retransmit(usize),
    /// Retransmits lost segments in one step: maximum number, length, and share of the outstanding
    /// data.
    RetransmitAlike(u64, u32, f64),
    Suspect,
    Timeout,
    Wait(u64),
    Undo,
    Probe,
}

fn operation() -> impl Strategy<Value = Operation> {
    let share = prop_oneof![2 => Just(0.0), 1 => 0.0..0.3, 1 => 0.0..1.0];
    let block = (0.0..1.0, prop_oneof![0.0..0.2, 0.0..1.0]);
    prop_oneof![
        4 => proptest::collection::vec(prop_oneof![3 => Just(1000_u32), 1 => 1_u32..1500], 1..12)
            .prop_map(Operation::Send),
        8 => (share, proptest::collection::vec(block, 0..4), proptest::bool::weighted(0.9))
            .prop_map(|(share, blocks, snap)| Operation::Acknowledge(share, blocks, snap)),
        8 => (0.0..1.0).prop_map(Operation::Grow),
        8 => prop_oneof![2 => Just(0_usize), 1 => 1_usize..4].prop_map(Operation::Next),
        4 => (0_usize..5).prop_map(Operation::Retransmit),
        4 => (0_u64..20, prop_oneof![8 => Just(1000_u32), 1 => 1_u32..1500], prop_oneof![Just(1.0), 0.0..1.0])
            .prop_map(|(most, length, share)| Operation::RetransmitAlike(most, length, share)),
        1 => Just(Operation::Suspect),
        1 => Just(Operation::Timeout),
        2 => (0_u64..300).prop_map(Operation::Wait),
        1 => Just(Operation::Undo),
        1 => Just(Operation::Probe),
    ]
}

struct Comparison {
    board: Scoreboard,
    naive: Naive,
    method: Method,
    now: u64,
    una: u64,
    highest: u64,
    newest: Option<Transmission>,
    /// The SACK blocks of the last acknowledgment.
    acknowledge: Vec<(u64, u64)>,
    /// Number of buffers sent, and number of buffers split.
    buffers: u64,
    parts: u64,
}

impl Comparison {
    fn new(method: Method, full: u32) -> Self {
        let mut board = Scoreboard::new();
        board.count_segments(full);
        board.watch_retransmissions(method == Method::Time);
        Self {
            board,
            naive: Naive::default(),
            method,
            now: 1,
            una: 1,
            highest: 1,
            newest: None,
            acknowledge: Vec::new(),
            buffers: 0,
            parts: 0,
        }
    }

    /// `goes_on`: in one buffer with the previous segment.
    fn send(&mut self, length: u32, goes_on: bool) {
        let end = self.highest + u64::from(length);
        if goes_on && self.board.full > 0 {
            self.board.continue_buffer();
        } else {
            self.buffers += 1;
        }
        self.board.push(self.highest, end, at(self.now));
        if length < self.board.full {
            self.board.measure_last(end);
        }
        self.naive.transmissions += 1;
        self.naive.records.push(Record {
            start: self.highest,
            end,
            sent_at: at(self.now),
            order: self.naive.transmissions,
            buffer: self.buffers,
            part: self.buffers,
            ..Record::default()
        });
        self.highest = end;
    }

    /// The position at this share of the outstanding data.
    fn position(&self, share: f64, snap: bool) -> u64 {
        let position = self.una + ((self.highest - self.una) as f64 * share) as u64;
        if !snap {
            return position;
        }
        let ends = self.naive.records.iter().map(|r| r.end);
        ends.take_while(|&end| end <= position)
            .last()
            .unwrap_or(self.una)
    }

    fn acknowledge(&mut self, share: f64, shares: &[(f64, f64)], snap: bool) {
        // An honest receiver does not acknowledge SACKed data without all data before it; another
        // may.
        self.una = self.position(share, snap);
        self.board.acknowledge(self.una, arrival(self.now));
        self.naive.acknowledge(self.una);
        let ranges: Vec<_> = shares
            .iter()
            .map(|&(from, length)| {
                let start = self.position(from, snap);
                (
                    start,
                    self.position((from + length).min(1.0), snap).max(start + 1),
                )
            })
            .filter(|&(_, end)| end <= self.highest)
            .collect();
        self.sack(ranges);
    }

    fn sack(&mut self, mut ranges: Vec<(u64, u64)>) {
        if let [first, second, ..] = ranges[..]
            && first.0 >= second.0
            && first.1 <= second.1
        {
            ranges.remove(0); // it would be a D-SACK
        }
        process_blocks(&mut self.board, &ranges, self.una, self.highest);
        for &(start, end) in &ranges {
            self.naive.sack(start, end);
        }
        self.acknowledge = ranges;
        if let Some(newest) = self.board.delivered().latest_sent()
            && newest.is_newer_than(self.newest.as_ref())
        {
            self.newest = Some(newest);
        }
        match (self.method, self.newest) {
            (Method::Sacked, _) => {
                self.board.mark_below_sacked(3, 2000);
                self.naive.mark_below_sacked(3, 2000);
            }
            (Method::Forward, _) => {
                self.board.mark_below_forward();
                self.naive.mark_below_forward();
            }
            (Method::Time, Some(newest)) => {
                let allowance = Span::from_millis(200);
                self.board.mark_overdue(newest, allowance, at(self.now));
                self.naive.mark_overdue(newest, allowance, at(self.now));
            }
            (Method::Time, None) => {}
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Send(lengths) => {
                for (number, &length) in lengths.iter().enumerate() {
                    self.send(length, number % 3 > 0);
                    self.now += 1;
                }
            }
            Operation::Acknowledge(share, shares, snap) => self.acknowledge(*share, shares, *snap),
            Operation::Grow(share) => {
                let end = self.position(*share, true);
                let mut ranges = self.acknowledge.clone();
                let Some(first) = ranges.first_mut() else {
                    return;
                };
                first.1 = first.1.max(end);
                self.board.acknowledge(self.una, arrival(self.now));
                self.naive.acknowledge(self.una);
                self.sack(ranges);
            }
            Operation::Next(behind) => {
                let forward = self.naive.forward;
                let mut above = (self.naive.records.iter()).filter(|r| r.start >= forward);
                let Some(&Record { start, end, .. }) = above.nth(*behind) else {
                    return;
                };
                let mut ranges = self.acknowledge.clone();
                let block = match ranges.iter().position(|range| range.1 == start) {
                    Some(place) => (ranges.remove(place).0, end),
                    None => (start, end),
                };
                ranges.insert(0, block);
                ranges.truncate(4);
                self.board.acknowledge(self.una, arrival(self.now));
                self.naive.acknowledge(self.una);
                self.sack(ranges);
            }
            Operation::Retransmit(times) => {
                for _ in 0..*times {
                    let lost = self.board.next_lost();
                    assert_eq!(lost, self.naive.next_lost());
                    let Some(lost) = lost else { break };
                    self.retransmit(lost);
                    if self.method == Method::Time && times % 2 > 0 {
                        self.board.cut_after_last();
                        self.cut(lost.position + u64::from(lost.length));
                    }
                }
            }
            Operation::RetransmitAlike(most, length, share) => {
                let edge = self.una + ((self.highest - self.una) as f64 * share) as u64;
                let mut sent = Vec::new();
                self.now += 1;
                let now = at(self.now);
                let count = (self.board)
                    .retransmit_run(*length, edge, *most, now, |start| sent.push(start));
                assert_eq!(count, sent.len() as u64);
                let mut expected = Vec::new();
                while (expected.len() as u64) < *most
                    && let Some(lost) = self.naive.next_lost()
                    && lost.length == *length
                    // Short segments that count as full ones are retransmitted one by one.
                    && lost.length >= self.board.full
                    && lost.position + u64::from(lost.length) <= edge
                {
                    self.naive.retransmit(lost.position, now);
                    expected.push(lost.position);
                }
                assert_eq!(sent, expected);
            }
            // RFC 6675 only; RACK does not need it.
            Operation::Suspect if self.method == Method::Time => {}
            Operation::Suspect => {
                let suspect = self.board.next_suspect();
                assert_eq!(suspect, self.naive.next_suspect());
                if let Some(suspect) = suspect {
                    self.retransmit(suspect);
                }
            }
            // A tail loss probe, which only RACK uses, in Linux's variant.
            Operation::Probe if self.method != Method::Time => {}
            Operation::Probe => {
                let last = self.board.highest_not_sacked();
                assert_eq!(last, self.naive.highest_not_sacked());
                if let Some(last) = last {
                    let before = self.board.retransmitted_segments();
                    self.board.cut_before(last.position);
                    self.cut(last.position);
                    self.retransmit(last);
                    if self.board.retransmitted_segments() > before {
                        self.board.count_as_original(last.position);
                        self.naive.count_as_original(last.position);
                    }
                }
            }
            Operation::Timeout => {
                let recent = (self.method == Method::Time).then_some(Span::from_millis(100));
                self.board.mark_after_timeout(recent, at(self.now));
                self.naive.mark_after_timeout(recent, at(self.now));
            }
            Operation::Wait(milliseconds) => self.now += milliseconds,
            Operation::Undo => {
                self.board.unmark_lost();
                for record in &mut self.naive.records {
                    record.lost = false;
                }
            }
        }
    }

    fn cut(&mut self, position: u64) {
        // Split parts are not counted as buffers sent.
        self.parts += 1;
        self.naive.cut_buffer(position, u64::MAX - self.parts);
    }

    fn retransmit(&mut self, segment: LostSegment) {
        self.now += 1;
        let length = self.board.on_retransmitted(segment.position, at(self.now));
        assert_eq!(length, segment.length);
        self.naive.retransmit(segment.position, at(self.now));
    }

    fn compare(&mut self) {
        let outstanding = self.highest - self.una;
        assert_eq!(
            self.board.pipe(outstanding),
            self.naive.pipe(self.board.full)
        );
        assert_eq!(self.board.sacked(), self.naive.sum(|r| r.sacked));
        assert_eq!(self.board.lost(), self.naive.sum(|r| r.lost));
        assert_eq!(
            self.board.retransmitted(),
            self.naive.sum(|r| r.retransmitted)
        );
        assert_eq!(self.board.forward(), self.naive.forward);
        assert_eq!(self.board.segments(), self.naive.records.len());
        if self.board.full > 0 {
            let (left, now) = self.naive.buffers();
            assert_eq!(self.board.merged(), left - now);
        }
        assert_eq!(self.board.next_lost(), self.naive.next_lost());
        assert_eq!(
            self.board.highest_not_sacked(),
            self.naive.highest_not_sacked()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// For any sequence of operations, the scoreboard equals the reference implementation, which
    /// walks all segments.
    #[test]
    fn equals_the_reference_implementation(
        method in prop_oneof![Just(Method::Sacked), Just(Method::Forward), Just(Method::Time)],
        full in prop_oneof![Just(0_u32), Just(1000)],
        operations in proptest::collection::vec(operation(), 1..120),
    ) {
        let mut comparison = Comparison::new(method, full);
        for operation in &operations {
            comparison.apply(operation);
            if matches!(operation, Operation::Acknowledge(..)) {
                prop_assert_eq!(comparison.board.delivered().bytes(), comparison.naive.delivered);
            }
            comparison.compare();
        }
    }

    /// With arbitrary SACK blocks, only sent data is marked, and nothing panics.
    #[test]
    fn invalid_blocks_are_ignored(
        words in proptest::collection::vec((any::<u32>(), any::<u32>()), 1..200),
        sent in 1_u64..100,
    ) {
        let mut board = Scoreboard::new();
        for n in 0..sent {
            board.push(1 + 1000 * n, 1001 + 1000 * n, at(n));
        }
        let (una, highest) = (1001, 1 + 1000 * sent);
        for pair in words.chunks(3) {
            board.acknowledge(una.min(highest), arrival(1000));
            let blocks: SackBlocks = pair
                .iter()
                .map(|&(start, length)| SackBlock {
                    start: Seq::new(start),
                    end: Seq::new(start.wrapping_add(length)),
                })
                .collect();
            board.sack(blocks.as_slice(), una.min(highest), wire(una.min(highest)), highest);
            board.mark_below_sacked(3, 2000);
            prop_assert!(board.sacked() <= highest - una.min(highest));
        }
    }
}

fn ten() -> Scoreboard {
    let mut board = Scoreboard::new();
    for n in 0..10 {
        board.push(1 + 1000 * n, 1001 + 1000 * n, at(n));
    }
    board.acknowledge(1, arrival(100));
    board
}

#[test]
fn invalid_blocks_are_counted() {
    let mut board = ten();
    board.acknowledge(2001, arrival(100));
    let lies = [(5001, 10_002), (3001, 3001), (1, 1001), (20_001, 21_001)];
    board.sack(blocks(&lies).as_slice(), 2001, wire(2001), 10_001);
    assert_eq!((board.sacked(), board.ignored_blocks()), (0, 4));
    assert_eq!(board.delivered().duplicate(), None);
}

#[test]
fn dsacks_are_below_the_acknowledgment_or_inside_the_second_block() {
    let mut board = ten();
    board.watch(true);
    board.acknowledge(2001, arrival(100));
    board.sack(
        blocks(&[(1, 1001), (3001, 4001)]).as_slice(),
        2001,
        wire(2001),
        10_001,
    );
    assert_eq!(board.delivered().duplicate(), Some((1, 1001)));
    assert_eq!((board.sacked(), board.delivered().bytes()), (1000, 3000));
    board.acknowledge(2001, arrival(101));
    board.sack(
        blocks(&[(4001, 5001), (3001, 6001)]).as_slice(),
        2001,
        wire(2001),
        10_001,
    );
    assert_eq!(board.delivered().duplicate(), Some((4001, 5001)));
    assert_eq!((board.sacked(), board.delivered().bytes()), (3000, 2000));
    assert_eq!(board.newly_sacked(), [(4001, 6001)]);
    assert_eq!(board.ignored_blocks(), 0);
}

#[test]
fn one_more_segment_takes_the_fast_path() {
    let mut board = ten();
    let mut acknowledge = |ranges: &[(u64, u64)]| process_blocks(&mut board, ranges, 1, 10_001);
    assert!(!acknowledge(&[(2001, 3001)]), "no previous blocks");
    assert!(acknowledge(&[(2001, 4001)]));
    assert!(
        acknowledge(&[(6001, 7001), (2001, 4001)]),
        "behind another gap"
    );
    assert!(acknowledge(&[(6001, 8001), (2001, 4001)]));
    assert!(
        !acknowledge(&[(2001, 5001), (6001, 8001)]),
        "not the highest"
    );
    assert!(
        acknowledge(&[(6001, 9001), (2001, 5001)]),
        "it was the second block"
    );
    assert!(!acknowledge(&[(6001, 9001), (2001, 5001)]), "no new data");
    assert!(
        !acknowledge(&[(6001, 10_001), (1001, 5001)]),
        "comparison blocks have grown"
    );
    assert_eq!((board.sacked(), board.ignored_blocks()), (8000, 0));
}

#[test]
fn everything_is_retransmitted_to_a_reneging_receiver() {
    let mut board = ten();
    board.sack(blocks(&[(1001, 10_001)]).as_slice(), 1, wire(1), 10_001);
    assert_eq!(board.sacked(), 9000);
    board.acknowledge(1001, arrival(200));
    // The peer should have acknowledged everything.
    assert!(board.mark_after_timeout(None, at(1000)));
    assert_eq!(
        (board.sacked(), board.lost(), board.pipe(9000)),
        (0, 9000, 0)
    );
    let first = board.next_lost();
    assert_eq!(first.map(|lost| lost.position), Some(1001));
}

#[test]
fn cleared_marks_leave_everything_in_flight_and_to_be_sacked_again() {
    let mut board = ten();
    for _ in 0..2 {
        board.sack(blocks(&[(5001, 6001)]).as_slice(), 1, wire(1), 10_001);
        assert_eq!((board.sacked(), board.delivered().bytes()), (1000, 1000));
        board.mark_after_timeout(None, at(5));
        assert_eq!((board.lost(), board.pipe(10_000)), (9000, 0));
        board.clear_marks();
        assert_eq!((board.sacked(), board.sacked_segments()), (0, 0));
        assert_eq!((board.lost(), board.has_lost_to_send()), (0, false));
        assert_eq!((board.forward(), board.pipe(10_000)), (1, 10_000));
        board.acknowledge(1, arrival(100));
    }
}

/// The memory for steady work does not grow: nothing is allocated once the window has been full.
#[test]
fn memory_is_bounded_by_the_outstanding_data() {
    let mut board = Scoreboard::new();
    board.watch_retransmissions(true);
    let mut position = 1;
    let mut una = 1;
    for round in 0..200_000_u64 {
        board.push(position, position + 1000, at(round));
        position += 1000;
        if position - una < 2_000_000 {
            continue;
        }
        una += 1000;
        board.acknowledge(una, arrival(round));
        // Every ninth segment is lost for a while.
        if round % 9 != 0 {
            let end = position - 1000;
            board.sack(
                blocks(&[(end - 1000, end)]).as_slice(),
                una,
                wire(una),
                position,
            );
        }
        if let Some(newest) = board.delivered().latest_sent() {
            board.mark_overdue(newest, Span::from_millis(2000), at(round));
        }
        while let Some(lost) = board.next_lost() {
            board.on_retransmitted(lost.position, at(round));
        }
    }
    assert!(board.segments() <= 2001);
    let loss_state = board.loss_state.as_deref().unwrap();
    assert!(loss_state.retransmissions.len() <= 2 * board.segments());
    assert!(loss_state.lost_again.len() <= board.segments());
}

/// tcp_check_sack_reordering: the distance from the late segment to the highest one received so
/// far, also by the same acknowledgment.
#[test]
fn reordering_is_measured_from_the_highest_segment_received() {
    let mut board = ten();
    board.sack(blocks(&[(2001, 3001)]).as_slice(), 1, wire(1), 10_001);
    board.acknowledge(1001, arrival(100));
    board.sack(
        blocks(&[(2001, 3001), (5001, 6001)]).as_slice(),
        1001,
        wire(1001),
        10_001,
    );
    board.measure_reordering();
    assert_eq!((board.reordering(), board.reorderings_seen()), (6000, 1));
}

/// tcp_sacktag_one: a segment that was retransmitted, SACKed and then reported by a D-SACK had
/// arrived late the first time.
#[test]
fn dsack_of_a_sacked_retransmission_shows_reordering() {
    let mut board = ten();
    board.sack(
        blocks(&[(1001, 2001), (3001, 6001)]).as_slice(),
        1,
        wire(1),
        10_001,
    );
    board.on_retransmitted(2001, at(100));
    board.begin(arrival(110));
    board.sack(blocks(&[(1001, 6001)]).as_slice(), 1, wire(1), 10_001);
    assert_eq!(
        board.reordering(),
        0,
        "the retransmission may have been necessary"
    );
    assert!(board.is_sacked_retransmission(2001));
    assert!(!board.is_sacked_retransmission(3001));
    board.begin(arrival(200));
    let twice = blocks(&[(2001, 3001), (1001, 6001)]);
    board.sack(twice.as_slice(), 1, wire(1), 10_001);
    assert_eq!(board.late_duplicate(), None);
    board.set_late_duplicate_at(2001);
    assert_eq!(board.late_duplicate(), Some(2001));
    board.record_late_duplicate(2001, 1);
    assert_eq!(board.reordering(), 4000);
    // A loss limits the presumed reordering degree.
    board.limit_reordering(3000);
    assert_eq!(board.reordering(), 3000);
}

/// tcp_rack_advance: a SACKed segment counts as delivered by its last transmission, whatever the
/// timestamp echo, which is from before the gap.
#[test]
fn timestamp_echo_is_ignored_for_sacked_segments() {
    for ignore in [false, true] {
        let mut board = ten();
        board.ignore_echo_of_sacked(ignore);
        board.on_retransmitted(2001, at(100));
        board.begin(Arrival {
            echo: Some(HostClock::default().timestamp(at(0))),
            ..arrival(200)
        });
        board.sack(blocks(&[(2001, 3001)]).as_slice(), 1, wire(1), 10_001);
        let newest = board.delivered().latest_sent();
        assert_eq!(newest.map(|it| it.sent_at), ignore.then(|| at(100)));
    }
}

/// Retransmits all lost segments. Returns them.
fn retransmit_all_lost(board: &mut Scoreboard) -> Vec<(u64, u32)> {
    let mut sent = Vec::new();
    while let Some(lost) = board.next_lost() {
        board.on_retransmitted(lost.position, at(20));
        sent.push((lost.position, lost.length));
    }
    sent
}

#[test]
fn a_buffer_is_split_as_a_whole() {
    let cut = |full: u32| {
        let mut board = Scoreboard::new();
        board.count_segments(full);
        board.push(1, 1001, at(1));
        board.continue_buffer();
        board.push(1001, 2001, at(1));
        board.push(2001, 3001, at(1));
        board.note_pushed(3001);
        if full > 0 {
            board.count_segments(960);
        }
        board.shorten(960, 3001);
        board
    };
    let mut board = cut(1000);
    assert_eq!(board.begin_buffer(1, 2), 2);
    assert_eq!(
        board.begin_buffer(1921, 2),
        1,
        "the rest is a buffer of its own"
    );
    assert_eq!(board.begin_buffer(2001, 1), 1, "only one may be sent");
    assert!(!board.is_pushed(2961) && board.is_pushed(3001));
    let parts = [(1, 960), (961, 960), (1921, 80), (2001, 960), (2961, 40)];
    assert_eq!(retransmit_all_lost(&mut board), parts);
    assert_eq!(board.pipe(3000), 5 * 960, "each counts as a full segment");
}

#[test]
fn a_short_retransmission_merges_following_segments() {
    let four = || {
        let mut board = Scoreboard::new();
        board.count_segments(1000);
        for (start, end) in [(1, 11), (11, 511), (511, 1011), (1011, 1501)] {
            board.push(start, end, at(1));
            board.measure_last(end);
        }
        board.note_pushed(1501);
        board.mark_after_timeout(None, at(10));
        board
    };
    let never = |_| false;
    let mut board = four();
    assert_eq!(
        board.collapse(1, 1000, 400, 1501, never),
        None,
        "outside of the window"
    );
    assert_eq!(board.collapse(1, 1000, 9000, 1501, |end| end == 11), None);
    let length = |segment: Option<LostSegment>| segment.map(|it| it.length);
    let first = board.collapse(1, 1000, 9000, 1501, never);
    assert_eq!(
        length(first),
        Some(510),
        "not more than fits into a full segment"
    );
    let second = board.collapse(511, 1000, 9000, 1501, never);
    assert_eq!(length(second), Some(990));
    assert!(board.is_pushed(1501));
    assert_eq!(retransmit_all_lost(&mut board), [(1, 510), (511, 990)]);
    assert_eq!(board.pipe(1500), 2000);

    // SACKed segments, and segments sent in one buffer with others, are not merged.
    let mut board = four();
    process_blocks(&mut board, &[(11, 511)], 1, 1501);
    assert_eq!(board.collapse(1, 1000, 9000, 1501, never), None);
    let mut board = Scoreboard::new();
    board.push(1, 11, at(1));
    board.push(11, 21, at(1));
    board.continue_buffer();
    board.push(21, 31, at(1));
    assert_eq!(board.collapse(1, 1000, 9000, 31, never), None);
}
