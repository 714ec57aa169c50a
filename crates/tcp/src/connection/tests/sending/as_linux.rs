//! What leaves at once, and when it is written: as Linux's.

use super::*;

#[test]
fn in_linux_a_window_decays_by_whole_segments() {
    let config = Config {
        mss: 1000,
        timestamps: false,
        initial_window: 3,
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    };
    let mut tcp = answered_after(Span::from_millis(100), &config, 65_535, 0);
    tcp.write(1000);
    tcp.wait(Span::from_millis(100));
    tcp.ack(1001, 65_535);
    let rto = tcp.tcp.rto();
    tcp.wait(rto * 3 / 2);
    tcp.sent();
    // 21 segments, and some of another: tcp_cwnd_restart has 10, and tcp_current_ssthresh 10 and 5.
    tcp.tcp.sender.congestion.restart(21_700, 5000);
    tcp.write(15_000);
    assert_eq!(tcp.tcp.slow_start_threshold(), 15_000);
    assert_eq!(tcp.tcp.congestion_window(), 10_000);
    assert_eq!(tcp.sent_ranges().len(), 10);
}

/// Its SYN was answered after so long, by a peer of the same segments with this window and scale, and SACK.
fn answered_after(rtt: Span, config: &Config, window: u16, scale: u8) -> Single {
    let mut tcp = Single::connect(config);
    tcp.sent();
    tcp.wait(rtt);
    tcp.syn_ack(
        window,
        bentpipe_types::SynOptions {
            maximum_segment_size: Some(config.mss),
            window_scale: Some(scale),
            sack_permitted: true,
            ..Default::default()
        },
    );
    tcp
}

/// With a round trip of 50 ms, a window of 150 segments of which all are outstanding, and plenty to send:
/// three leave at once (1.2 windows a round trip, for 1/1024 s).
fn as_linux_with_a_full_window() -> Single {
    let mut config = Config {
        mss: 1000,
        initial_window: 150,
        initial_slow_start_threshold: Some(150_000),
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    };
    config.slow_start = SlowStartKind::AppropriateByteCounting {
        limit_segments: u32::MAX,
    };
    config.send_sizes = None;
    config.timestamps = false;
    let mut tcp = answered_after(Span::from_millis(50), &config, 65_535, 7);
    tcp.sent();
    // The window that follows is scaled.
    tcp.ack(1, 65_535);
    tcp.write(1_000_000);
    assert_eq!(tcp.sent_ranges(), segments(0..150));
    tcp
}

#[test]
fn what_could_leave_waits_for_the_next_acknowledgment_if_more_leaves_then() {
    // tcp_tso_should_defer
    let mut tcp = as_linux_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // Nothing was sent for a millisecond: all that may leave leaves.
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(150..152));
    // Then two wait for a third, and a fourth for two more.
    let mut sent = Vec::new();
    for acknowledged in [4, 6, 8, 10] {
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, acknowledged);
        sent.push(tcp.sent_ranges().len());
    }
    assert_eq!(sent, [0, 3, 3, 0]);
    // What waited leaves when the acknowledgments have stopped for a while.
    tcp.wait(Span::from_millis(2));
    acknowledge(&mut tcp, 11);
    assert_eq!(tcp.sent_ranges(), segments(158..161));
}

#[test]
fn nothing_waits_for_an_acknowledgment_that_is_not_due() {
    // Linux 6.18: the oldest segment's acknowledgment is due a smoothed round trip, 50 ms, after it left.
    // (What acknowledges before that is a surprise.)
    for since_it_left in [10, 48] {
        let mut tcp = as_linux_with_a_full_window();
        tcp.wait(Span::from_millis(since_it_left));
        acknowledge(&mut tcp, 2);
        tcp.sent_ranges();
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, 4);
        assert_eq!(tcp.sent_ranges().len(), 2, "{since_it_left} ms");
    }
}

#[test]
fn after_a_silence_one_buffer_leaves_and_what_is_less_than_another_waits() {
    let mut tcp = as_linux_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // Three leave at once; of the other two the sender has just sent something.
    acknowledge(&mut tcp, 5);
    assert_eq!(tcp.sent_ranges(), segments(150..153));
}

#[test]
fn a_buffer_ends_where_the_peers_window_does() {
    // tcp_mss_split_point: of a window of 5 segments and 456 bytes, two and two leave, and then one and the 456 bytes.
    // Where two and two are all whole ones, what is less than another waits.
    for (window, ends) in [(5 * 1448 + 456, 456), (4 * 1448 + 456, 1448)] {
        let mut tcp = linux_reno(window);
        tcp.write(1 << 20);
        let sent = tcp.sent_ranges();
        assert_eq!(sent.last().unwrap().1, ends, "{window}");
        // A second short segment waits for the first (Nagle's algorithm).
        tcp.wait(Span::from_millis(100));
        tcp.ack(1 + 1448, window - 1000);
        let more: Vec<_> = tcp.sent_ranges().iter().map(|sent| sent.1).collect();
        assert!(ends == 1448 || more.is_empty(), "{more:?}");
    }
}

/// SACK blocks take 12 bytes of each segment: then more of them fit into the window than whole ones would.
#[test]
fn a_buffer_that_ends_at_the_window_holds_no_more_than_was_written() {
    let mut tcp = linux_reno(65_535);
    let mut ahead = tcp.segment(101, 1, 100, Flags::ACK);
    ahead.window = 1448 + 1430;
    tcp.arrives(ahead);
    tcp.sent();
    tcp.write(1448 + 1431);
    let lengths: Vec<_> = tcp.sent_ranges().iter().map(|sent| sent.1).collect();
    assert_eq!(lengths, [1436, 1436, 6]);
}

/// forced_push and tcp_push_one: what comes behind half of the largest window is not written yet when that leaves, and its
/// buffer ends there. (The first as Linux 6.18.44, `receive_buffer = "19608 B"`.)
#[test]
fn a_call_is_pushed_after_half_of_the_largest_window() {
    // Buffers of five: two leave when it is full, two more are written, and then all of it leaves, and so on.
    let ten = vec![2, 4, 6, 7, 9];
    for (window, pushes) in [
        (10, ten),
        (14, vec![2, 4, 6, 8, 9]),
        (22, vec![2, 4, 6, 8, 10]),
    ] {
        let mut tcp = linux_reno(window * 1448);
        tcp.sent();
        tcp.write(256 << 10);
        let sent = tcp.sent();
        assert_eq!(sent.len(), 10);
        let pushed: Vec<_> = sent
            .iter()
            .map(|seen| &seen.packet)
            .filter(|packet| packet.flags.has(Flags::PSH))
            .map(|packet| (packet.payload_offset + u64::from(packet.payload_length)) / 1448)
            .collect();
        assert_eq!(pushed, pushes, "{window}");
    }
}

#[test]
fn a_paced_writer_counts_on_what_leaves_at_once() {
    let mut config = Config {
        send_sizes: Some(crate::config::BufferSizes {
            most: 65_536,
            ..crate::config::BufferSizes::SEND
        }),
        ..as_linux_reno()
    };
    config.congestion_control = CongestionControlKind::Bbr1;
    let mut tcp = answered_after(Span::from_millis(100), &config, 65_160, 10);
    // Ten one by one, and two buffers of 22.
    assert_eq!(tcp.write(1 << 20), 54 * 1448);
    tcp.sent();
    // The pacer's time has long come when there is room again: a buffer leaves at once, and one more is written.
    let paced = tcp.tcp.sender.room_in_send_buffer(Time::ZERO);
    let now = tcp.world.now;
    assert_eq!(tcp.tcp.sender.room_in_send_buffer(now), paced);
    for una in 1..=54 {
        tcp.wait(Span::from_millis(50));
        tcp.ack(1 + 1448 * una, 79);
        tcp.sent();
    }
    tcp.wait(Span::from_millis(100));
    let now = tcp.world.now;
    let paced = tcp.tcp.sender.room_in_send_buffer(Time::ZERO);
    assert!(tcp.tcp.sender.room_in_send_buffer(now) > paced);
}

fn as_linux_reno() -> Config {
    Config {
        mss: 1448,
        timestamps: false,
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    }
}

/// After a handshake in which the peer offered `window` bytes, and does not scale its windows.
fn linux_reno(window: u16) -> Single {
    answered_after(Span::from_millis(100), &as_linux_reno(), window, 0)
}

/// What `ss` says of a kernel's sender (Linux 6.18.44 in slow start, 10 Mbit/s and 800 ms, tcp_wmem as it comes):
/// segments acknowledged, written, and sk_sndbuf at each write.
#[test]
fn a_writer_goes_on_where_linuxs_does() {
    const SEEN: [(u32, u64, u64); 4] = [
        (0, 32, 46_080),
        (12, 88, 101_376),
        (26, 143, 165_888),
        (58, 261, 313_344),
    ];
    let config = Config {
        mss: 1448,
        timestamps: false,
        congestion_control: CongestionControlKind::Reno,
        slow_start: SlowStartKind::AppropriateByteCounting {
            limit_segments: u32::MAX,
        },
        ..Config::linux()
    };
    let mut tcp = answered_after(Span::from_millis(800), &config, 65_160, 10);
    // One by one, and, when the receiver's quick acknowledgments are used up, in pairs.
    let pairs = (26..=32).step_by(2);
    let acknowledged = (1..=24).chain(pairs).chain(33..=56).chain([58]);
    let mut seen = Vec::new();
    let mut written = 0;
    for una in [0].into_iter().chain(acknowledged) {
        match una {
            0 => (),
            1 | 11 | 32 => tcp.wait(Span::from_millis(770)),
            _ => tcp.wait(Span::from_micros(1_200)),
        }
        if una > 0 {
            // As the receiver's grows.
            let window = if una > 30 {
                (1448 * (2 * una + 12)) >> 10
            } else {
                79
            };
            tcp.ack(1 + 1448 * una, window as u16);
        }
        if una == 0 || tcp.tcp.take_events().has(Events::WRITABLE) {
            let room = tcp.tcp.sender.room_in_send_buffer(tcp.world.now);
            tcp.write(1 << 30);
            written += room / 1448;
            let sizing = tcp.tcp.sender.send.sizing.as_ref().unwrap();
            seen.push((una, written, sizing.buffer()));
        }
        tcp.sent();
    }
    assert_eq!(seen, SEEN);
}

/// A recovery of Reno's with the kernel's own buffers over 10 Mbit/s and 540 ms: so many segments of the first window are
/// acknowledged one by one, the next ones are lost, and what is above them is SACKed one by one. Returns, when so many of
/// them are SACKed and where the writer goes on, how many, what the buffers take (sk_wmem_queued), and may take.
fn recovery(acknowledged: u32, lost: u32, sacked: &[u32]) -> (u64, Vec<(u32, u64, u64)>) {
    let mut tcp = answered_after(Span::from_millis(540), &as_linux_reno(), 65_160, 10);
    tcp.write(1 << 30);
    tcp.sent();
    tcp.wait(Span::from_millis(540));
    for una in 1..=acknowledged {
        tcp.wait(Span::from_micros(1_600));
        tcp.ack(1 + 1448 * una, 79);
        tcp.sent();
    }
    tcp.wait(Span::from_millis(540));
    let mut seen = Vec::new();
    for above in 1..=*sacked.last().unwrap() {
        tcp.wait(Span::from_millis(2));
        let mut duplicate = tcp.segment(1, 1 + 1448 * acknowledged, 0, Flags::ACK);
        duplicate.window = 79;
        let first = tcp.ours + (1 + 1448 * (acknowledged + lost));
        let block = bentpipe_types::SackBlock {
            start: first,
            end: first + 1448 * above,
        };
        let packet = tcp.world.packets.insert(duplicate);
        (tcp.world.packets).set_sack_blocks(packet, &[block].into_iter().collect());
        tcp.tcp.on_packet(packet, &mut tcp.world.cx());
        let goes_on = tcp.tcp.take_events().has(Events::WRITABLE);
        tcp.sent();
        let sender = &tcp.tcp.sender;
        let sizing = sender.send.sizing.as_ref().unwrap();
        if goes_on || sacked.contains(&above) {
            seen.push((above, sizing.memory(&sender.held()), sizing.buffer()));
        }
        if goes_on {
            tcp.write(1 << 30);
        }
    }
    (tcp.tcp.slow_start_threshold() / 1448, seen)
}

/// What `ss` says of a kernel's sender in a recovery (Linux 6.18.44). SACKed buffers become one, one of which a part goes
/// again becomes two, and what they may take grows with the window as it is on its way down: so the writer goes on in the midst of it.
#[test]
fn a_writer_goes_on_in_a_recovery_where_linuxs_does() {
    let (threshold, seen) = recovery(9, 1, &[5, 12, 16]);
    assert_eq!(threshold, 9, "of 19 the half");
    let of_linux = [
        (5, 43_288, 46_080),
        (12, 40_792, 59_904),
        (16, 39_128, 59_904),
    ];
    assert_eq!(seen, of_linux);
    // Both segments of a buffer are lost, and go again one by one.
    let (threshold, seen) = recovery(10, 2, &[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(threshold, 10);
    let of_linux = [
        (1, 42_672, 46_080),
        (2, 41_840, 46_080),
        (3, 42_672, 46_080),
        (4, 41_840, 46_080),
        (5, 41_840, 46_080),
        (6, 41_008, 46_080),
    ];
    assert_eq!(seen[..6], of_linux);
    assert_eq!((seen[6].0, seen[6].2), (7, 73_728), "it goes on");
}
