//! The same with bytes: what a live gateway carries.

use bentpipe_tcp::{Rings, Source, State};
use bentpipe_types::{Span, Time};

use super::net::{CLIENT, Net, SERVER, two};

/// Bytes that are at no two places the same for long.
fn text(side: usize, from: usize, length: usize) -> Vec<u8> {
    (from..from + length)
        .map(|at| (at.wrapping_mul(2_654_435_761 + 2 * side) >> 7) as u8)
        .collect()
}

#[test]
fn every_byte_is_the_one_that_was_written() {
    let mut net = Net::<Rings>::new(two(|s| s.facing_tcp.send_buffer = 50_000), &[1, 20, 1]);
    // Every 13th packet of the satellite's is lost.
    let mut count = 0_u32;
    net.hook(
        1,
        Box::new(move |_, _, _| {
            count += 1;
            (!count.is_multiple_of(13)).then_some(())
        }),
    );
    net.connect(CLIENT, u32::MAX - 20_000);
    let established = |net: &Net<Rings>| net.state(CLIENT) == State::Established;
    assert!(net.run_until(Time::ZERO + Span::from_secs(20), established));
    const LENGTH: usize = 700_000;
    let mut written = [0; 2];
    let mut got = [Vec::new(), Vec::new()];
    for _ in 0..20_000 {
        for side in [CLIENT, SERVER] {
            if net.state(side) == State::Closed && written[side] == 0 {
                continue;
            }
            if net.hosts[side].is_none() {
                continue;
            }
            let piece = text(side, written[side], (LENGTH - written[side]).min(30_000));
            if !piece.is_empty() {
                written[side] +=
                    net.at(side, |socket, cx| socket.write(Source::Bytes(&piece), cx)) as usize;
                if written[side] == LENGTH {
                    net.at(side, |socket, cx| socket.close(cx));
                }
            }
            let mut out = vec![0; 10_000];
            let read = net.at(side, |socket, cx| socket.read_bytes(&mut out, cx));
            got[side].extend_from_slice(&out[..read]);
        }
        net.run(Span::from_millis(20));
        if got.iter().all(|got| got.len() == LENGTH) {
            break;
        }
    }
    for side in [CLIENT, SERVER] {
        assert!(
            got[1 - side] == text(side, 0, LENGTH),
            "{} bytes",
            got[1 - side].len()
        );
    }
    net.expect_nothing_left();
}
