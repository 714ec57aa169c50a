//! What a mark does to the window, as Linux has it: `tcp_enter_cwr`, `tcp_cwnd_reduction`, `tcp_end_cwnd_reduction`.

use bentpipe_types::{Ecn, Flags, SackBlock, SackBlocks, Span, SynOptions};

use crate::testing::Single;
use crate::{
    Config, CongestionControlKind, CongestionState, EcnMode, Habits, IdleRestart, QuickAcks,
    RecoveryKind, SlowStartKind,
};

/// Of a segment.
const BYTES: u32 = 1000;

/// A sender by Reno's window of ten segments of 1000 bytes, all of which are outstanding; both ends have agreed on ECN.
fn sender() -> Single {
    let habits = Habits {
        reduces_gradually_for_marks: true,
        reduces_window: true,
        ..Habits::RFC
    };
    sender_with(RecoveryKind::Sack, habits)
}

/// The same with this recovery, and these habits.
pub(super) fn sender_with(recovery: RecoveryKind, habits: Habits) -> Single {
    let config = Config {
        recovery,
        mss: BYTES as u16,
        timestamps: false,
        window_scaling: false,
        ecn: EcnMode::Request,
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::Standard,
        idle_restart: IdleRestart::Off,
        habits,
        ..Config::default()
    };
    let mut tcp = Single::connect(&config);
    tcp.wait(Span::from_millis(100));
    let options = SynOptions {
        maximum_segment_size: Some(BYTES as u16),
        sack_permitted: true,
        ..SynOptions::default()
    };
    let mut answer = tcp.segment(0, 1, 0, Flags::SYN.with(Flags::ACK).with(Flags::ECE));
    answer.window = 65_535;
    tcp.arrives_with(answer, options);
    tcp.sent();
    tcp.write(u64::from(1000 * BYTES));
    assert_eq!(
        tcp.sent_ranges().len(),
        10,
        "the SYN+ACK's ECE is no echo (RFC 3168 section 6.1.1)"
    );
    tcp.wait(Span::from_millis(100));
    tcp
}

/// Everything before this segment has arrived, and those between these; `marked`: the path has marked. Returns how many
/// segments leave for it.
pub(super) fn hear(
    tcp: &mut Single,
    before: u32,
    ahead: Option<(u32, u32)>,
    marked: bool,
) -> usize {
    let flags = if marked {
        Flags::ACK.with(Flags::ECE)
    } else {
        Flags::ACK
    };
    let mut packet = tcp.segment(1, 1 + before * BYTES, 0, flags);
    packet.window = 65_535;
    let packet = tcp.world.packets.insert(packet);
    if let Some((first, after)) = ahead {
        let block = SackBlock {
            start: tcp.ours + 1 + first * BYTES,
            end: tcp.ours + 1 + after * BYTES,
        };
        let blocks: SackBlocks = [block].into_iter().collect();
        tcp.world.packets.set_sack_blocks(packet, &blocks);
    }
    tcp.tcp.on_packet(packet, &mut tcp.world.cx());
    tcp.sent_ranges().len()
}

pub(super) fn window(tcp: &Single) -> u64 {
    tcp.tcp.info(tcp.world.now).congestion_window
}

fn state(tcp: &Single) -> CongestionState {
    tcp.tcp.info(tcp.world.now).congestion_state
}

/// Half of what is acknowledged leaves again, until half of the window is in flight; it grows no sooner than more is
/// acknowledged than was sent before the mark was heard of. RFC 3168 section 6.1.2 would have it at five at once: nothing leaves
/// for the first five of ten acknowledgments.
#[test]
fn the_window_comes_down_in_proportion_and_stays_there() {
    let mut tcp = sender();
    let sent: Vec<usize> = (1..=10)
        .map(|before| hear(&mut tcp, before, None, true))
        .collect();
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    assert_eq!(window(&tcp), 5);
    assert_eq!(
        state(&tcp),
        CongestionState::WindowReduced,
        "ten were sent before the mark, and no more than they are acknowledged"
    );
    assert_eq!(hear(&mut tcp, 11, None, false), 1);
    assert_eq!(state(&tcp), CongestionState::Open);
    for before in 12..=15 {
        hear(&mut tcp, before, None, false);
    }
    assert_eq!(window(&tcp), 6, "it grows again");
}

/// A mark that is echoed once more, after what was sent before the first one was heard of has arrived, is another one.
#[test]
fn a_mark_of_a_later_window_reduces_it_again() {
    let mut tcp = sender();
    for before in 1..=10 {
        hear(&mut tcp, before, None, true);
    }
    assert_eq!(hear(&mut tcp, 11, None, true), 1);
    assert_eq!(state(&tcp), CongestionState::WindowReduced);
    for before in 12..=15 {
        hear(&mut tcp, before, None, false);
    }
    assert_eq!(window(&tcp), 2);
}

/// What is lost while the window comes down is of the same congestion: it comes down to where it would have, and recovery is over
/// when what was sent before the mark has arrived (tcp_enter_recovery).
#[test]
fn a_loss_on_the_way_down_reduces_it_no_further() {
    let mut tcp = sender();
    hear(&mut tcp, 1, None, true);
    for after in 3..=5 {
        hear(&mut tcp, 1, Some((2, after)), false);
    }
    assert_eq!(state(&tcp), CongestionState::Recovery);
    for after in 6..=10 {
        hear(&mut tcp, 1, Some((2, after)), false);
    }
    assert_eq!(window(&tcp), 5);
    hear(&mut tcp, 10, None, false);
    assert_eq!(state(&tcp), CongestionState::Open);
    assert_eq!(window(&tcp), 5);
    assert_eq!(tcp.tcp.statistics().fast_recoveries, 1);
}

/// Everything has arrived twice: nothing was lost. But the path has marked, and the window stays (prior_ssthresh is 0).
#[test]
fn what_was_reduced_for_a_mark_is_not_taken_back() {
    for (marked, expected) in [(true, 5), (false, 11)] {
        let mut tcp = sender();
        hear(&mut tcp, 1, None, marked);
        for after in 3..=8 {
            hear(&mut tcp, 1, Some((2, after)), false);
        }
        assert_eq!(state(&tcp), CongestionState::Recovery);
        assert_eq!(tcp.tcp.statistics().segments_retransmitted, 1);
        // It has come twice.
        hear(&mut tcp, 9, Some((1, 2)), false);
        assert_eq!(tcp.tcp.statistics().spurious, 1);
        assert_eq!(window(&tcp), expected, "marked: {marked}");
    }
}

/// RFC 3168 section 6.1.5: what is outside of the window is not asked for its mark, whichever way acknowledgments go: what is old
/// altogether (which Linux takes for acceptable up to what was acknowledged last), and what a closed window keeps out.
#[test]
fn a_mark_outside_of_the_window_is_not_echoed() {
    for (quick_acks, whole) in [(QuickAcks::First(0), false), (QuickAcks::Linux, true)] {
        let config = Config {
            ecn: EcnMode::Request,
            receive_buffer: 3000,
            quick_acks,
            habits: Habits {
                takes_whole_segments: whole,
                ..Habits::RFC
            },
            timestamps: false,
            window_scaling: false,
            ..Config::default()
        };
        let mut tcp = Single::connect(&config);
        tcp.sent();
        let answer = tcp.segment(0, 1, 0, Flags::SYN.with(Flags::ACK).with(Flags::ECE));
        let options = SynOptions {
            maximum_segment_size: Some(1000),
            ..SynOptions::default()
        };
        tcp.arrives_with(answer, options);
        tcp.sent();
        let hears = |tcp: &mut Single, start: u32, mark: Ecn| {
            let mut packet = tcp.segment(start, 1, 1000, Flags::ACK);
            packet.set_ecn(mark);
            tcp.arrives(packet);
            tcp.wait(Span::from_millis(300));
            let sent = tcp.sent();
            let last = sent.last().expect("it is acknowledged");
            last.packet.flags.has(Flags::ECE)
        };
        assert!(!hears(&mut tcp, 1, Ecn::Capable0));
        assert!(!hears(&mut tcp, 1, Ecn::Congestion), "{quick_acks:?}: old");
        for start in [1001, 2001] {
            assert!(!hears(&mut tcp, start, Ecn::Capable0));
        }
        assert!(
            !hears(&mut tcp, 3001, Ecn::Congestion),
            "{quick_acks:?}: the window is closed"
        );
        tcp.read(3000);
        tcp.sent();
        assert!(hears(&mut tcp, 3001, Ecn::Congestion), "{quick_acks:?}");
    }
}
