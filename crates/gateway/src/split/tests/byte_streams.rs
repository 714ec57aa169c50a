//! Streams of real bytes, as in a live gateway.

use bentpipe_tcp::{Rings, Source};
use bentpipe_types::Span;

use super::common_cases;
use super::test_network::{CLIENT, Net, SERVER, settings, two};
use crate::split::HostSecret;

#[test]
fn all_bytes_arrive_unchanged() {
    let settings = two(|s| s.facing_tcp.send_buffer = 50_000);
    common_cases::every_byte(Net::new(settings, &[1, 20, 1]));
}

/// Timestamps that continue those of the hosts change nothing else.
#[test]
fn all_bytes_arrive_unchanged_with_a_secret() {
    let secret = HostSecret {
        keys: [1, 2],
        clock_ms: 3_600_000,
    };
    let settings = two(|s| s.secret = Some(secret));
    common_cases::every_byte(Net::new(settings, &[1, 20, 1]));
}

/// After a download a minute of TIME-WAIT is left, and there may be thousands of such connections.
#[test]
fn ended_connections_hold_no_buffers() {
    let mut net = Net::<Rings>::new(vec![settings(1)], &[1, 100]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    let text = vec![1; 60_000];
    net.at(SERVER, |socket, cx| socket.write(Source::Bytes(&text), cx));
    // The first segments are at the gateway, and the client has yet to acknowledge them.
    net.run(Span::from_millis(101));
    let memory = |net: &Net<Rings>| -> Vec<usize> {
        let pairs = net.gateways[0].pairs.active();
        pairs
            .map(|pair| pair.legs.iter().flatten().map(|leg| leg.memory()).sum())
            .collect()
    };
    assert!(memory(&net)[0] > 0);
    net.run(Span::from_secs(1));
    // An open connection that holds nothing has no buffers either.
    assert_eq!(memory(&net), [0]);
    let mut out = vec![0; 100_000];
    assert_eq!(
        net.at(CLIENT, |socket, cx| socket.read_bytes(&mut out, cx)),
        text.len()
    );
    for side in [SERVER, CLIENT] {
        net.at(side, |socket, cx| socket.close(cx));
        net.run(Span::from_secs(1));
    }
    assert!(net.gateways[0].pairs.active().all(|pair| pair.has_ended));
    assert_eq!(memory(&net), [0]);
}
