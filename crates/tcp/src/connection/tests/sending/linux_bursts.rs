//! Linux's bursts, write calls and send buffer.

use super::*;

#[test]
fn linux_window_decays_by_whole_segments() {
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
    // 21 segments and a part of another: tcp_cwnd_restart gives 10, and tcp_current_ssthresh 10 and
    // 5.
    tcp.tcp.sender.congestion.restart(21_700, 5000);
    tcp.write(15_000);
    assert_eq!(tcp.tcp.slow_start_threshold(), 15_000);
    assert_eq!(tcp.tcp.congestion_window(), 10_000);
    assert_eq!(tcp.sent_ranges().len(), 10);
}

/// A connection whose SYN was answered after `rtt`, by a peer with the same segment size, this
/// window and scale, and SACK.
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

/// A sender with a round trip of 50 ms, a window of 150 segments, all outstanding, and more data to
/// send. A burst has three segments (1.2 windows per round trip, for 1/1024 s).
fn linux_sender_with_a_full_window() -> Single {
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
    // Later windows are scaled.
    tcp.ack(1, 65_535);
    tcp.write(1_000_000);
    assert_eq!(tcp.sent_ranges(), segments(0..150));
    tcp
}

#[test]
fn a_short_burst_waits_for_the_next_acknowledgment() {
    // tcp_tso_should_defer
    let mut tcp = linux_sender_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // After a millisecond without transmission, a burst is not deferred.
    acknowledge(&mut tcp, 2);
    assert_eq!(tcp.sent_ranges(), segments(150..152));
    // Then two segments wait for a third, and a fourth for two more.
    let mut sent = Vec::new();
    for acknowledged in [4, 6, 8, 10] {
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, acknowledged);
        sent.push(tcp.sent_ranges().len());
    }
    assert_eq!(sent, [0, 3, 3, 0]);
    // Deferred segments are sent when acknowledgments have stopped for a while.
    tcp.wait(Span::from_millis(2));
    acknowledge(&mut tcp, 11);
    assert_eq!(tcp.sent_ranges(), segments(158..161));
}

#[test]
fn a_burst_is_not_deferred_if_no_acknowledgment_is_due() {
    // Linux 6.18: the oldest segment's acknowledgment is due a smoothed round trip, 50 ms, after it
    // was sent. (An acknowledgment before that is unexpected.)
    for since_it_left in [10, 48] {
        let mut tcp = linux_sender_with_a_full_window();
        tcp.wait(Span::from_millis(since_it_left));
        acknowledge(&mut tcp, 2);
        tcp.sent_ranges();
        tcp.wait(Span::from_micros(200));
        acknowledge(&mut tcp, 4);
        assert_eq!(tcp.sent_ranges().len(), 2, "{since_it_left} ms");
    }
}

#[test]
fn after_an_idle_period_one_burst_is_sent_and_the_rest_waits() {
    let mut tcp = linux_sender_with_a_full_window();
    tcp.wait(Span::from_millis(50));
    // A burst of three is sent; then the last transmission is recent, and the other two are
    // deferred.
    acknowledge(&mut tcp, 5);
    assert_eq!(tcp.sent_ranges(), segments(150..153));
}

#[test]
fn a_burst_extends_to_the_edge_of_the_window() {
    // tcp_mss_split_point: of a window of 5 segments and 456 bytes, two and two are sent, and then
    // one and 456 bytes. If two and two fill all whole segments, the short rest waits.
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

/// tcp_retransmit_timer handles a closed window before it counts a timeout.
#[test]
fn probes_of_a_window_that_closed_over_data_are_no_timeouts() {
    let mut tcp = linux_reno(10_000);
    tcp.write(5000);
    tcp.sent();
    tcp.ack(1449, 0);
    tcp.wait(Span::from_secs(1));
    let counted = tcp.tcp.statistics();
    assert!(counted.window_probes > 0);
    assert_eq!(counted.timeouts, 0);
}

/// SACK blocks take 12 bytes of each segment: more of these fit into the window than full ones
/// would.
#[test]
fn a_burst_to_the_edge_has_no_unwritten_data() {
    let mut tcp = linux_reno(65_535);
    let mut ahead = tcp.segment(101, 1, 100, Flags::ACK);
    ahead.window = 1448 + 1430;
    tcp.arrives(ahead);
    tcp.sent();
    tcp.write(1448 + 1431);
    let lengths: Vec<_> = tcp.sent_ranges().iter().map(|sent| sent.1).collect();
    assert_eq!(lengths, [1436, 1436, 6]);
}

/// forced_push and tcp_push_one: data behind half of the largest window is not written yet when
/// that is sent, and its buffer ends there. (The first case as observed with Linux 6.18.44,
/// `receive_buffer = "19608 B"`.)
#[test]
fn a_write_is_pushed_after_half_of_the_largest_window() {
    // Buffers of five segments: two are sent when a buffer is full, two more are written, and then
    // everything is sent.
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
fn send_buffer_room_of_a_paced_writer_includes_segments_sent_at_once() {
    let mut config = Config {
        send_sizes: Some(crate::config::BufferSizes {
            most: 65_536,
            ..crate::config::BufferSizes::SEND
        }),
        ..as_linux_reno()
    };
    config.congestion_control = CongestionControlKind::Bbr1;
    let mut tcp = answered_after(Span::from_millis(100), &config, 65_160, 10);
    // Ten segments one by one, and two buffers of 22.
    assert_eq!(tcp.write(1 << 20), 54 * 1448);
    tcp.sent();
    // When there is room again, the pacing timer has long expired: a buffer is sent at once, and
    // one more is written.
    let paced = tcp.tcp.sender.send_buffer_room(Time::ZERO);
    let now = tcp.world.now;
    assert_eq!(tcp.tcp.sender.send_buffer_room(now), paced);
    for una in 1..=54 {
        tcp.wait(Span::from_millis(50));
        tcp.ack(1 + 1448 * una, 79);
        tcp.sent();
    }
    tcp.wait(Span::from_millis(100));
    let now = tcp.world.now;
    let paced = tcp.tcp.sender.send_buffer_room(Time::ZERO);
    assert!(tcp.tcp.sender.send_buffer_room(now) > paced);
}

fn as_linux_reno() -> Config {
    Config {
        mss: 1448,
        timestamps: false,
        congestion_control: CongestionControlKind::Reno,
        ..Config::linux()
    }
}

/// A Linux sender with Reno after a handshake in which the peer advertised `window` bytes without
/// scaling.
fn linux_reno(window: u16) -> Single {
    answered_after(Span::from_millis(100), &as_linux_reno(), window, 0)
}

/// Values shown by `ss` for a kernel's sender (Linux 6.18.44 in slow start, 10 Mbit/s and 800 ms,
/// default tcp_wmem): segments acknowledged, segments written, and sk_sndbuf at each write.
#[test]
fn a_writer_continues_where_linux_does() {
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
    // One by one, and in pairs when the receiver's quick ACKs are used up.
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
            // The window of an autotuned receiver.
            let window = if una > 30 {
                (1448 * (2 * una + 12)) >> 10
            } else {
                79
            };
            tcp.ack(1 + 1448 * una, window as u16);
        }
        if una == 0 || tcp.tcp.take_events().has(Events::WRITABLE) {
            let room = tcp.tcp.sender.send_buffer_room(tcp.world.now);
            tcp.write(1 << 30);
            written += room / 1448;
            let sizing = tcp.tcp.sender.send.sizing.as_ref().unwrap();
            seen.push((una, written, sizing.buffer()));
        }
        tcp.sent();
    }
    assert_eq!(seen, SEEN);
}

/// Runs a recovery with Reno and autotuned buffers, over 10 Mbit/s and 540 ms. This many segments
/// of the first window are acknowledged one by one, the next `lost` are lost, and those above are
/// SACKed one by one. Returns the threshold and a list, with entries for the numbers in `sacked`
/// and whenever the writer continues: segments SACKed, sk_wmem_queued, and sk_sndbuf.
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
            seen.push((above, sizing.memory(&sender.held_data()), sizing.buffer()));
        }
        if goes_on {
            tcp.write(1 << 30);
        }
    }
    (tcp.tcp.slow_start_threshold() / 1448, seen)
}

/// Values shown by `ss` for a kernel's sender in recovery (Linux 6.18.44). SACKed buffers are
/// merged, and a partly retransmitted buffer is split. The send buffer grows with the window during
/// its reduction, so that the writer continues in the middle of recovery.
#[test]
fn a_writer_continues_in_recovery_where_linux_does() {
    let (threshold, seen) = recovery(9, 1, &[5, 12, 16]);
    assert_eq!(threshold, 9, "half of 19");
    let of_linux = [
        (5, 43_288, 46_080),
        (12, 40_792, 59_904),
        (16, 39_128, 59_904),
    ];
    assert_eq!(seen, of_linux);
    // Both segments of a buffer are lost, and retransmitted one by one.
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
    assert_eq!((seen[6].0, seen[6].2), (7, 73_728), "the writer continues");
}
