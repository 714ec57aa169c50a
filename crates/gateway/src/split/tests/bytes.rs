//! The same with bytes: what a live gateway carries.

use bentpipe_tcp::{Rings, Source};
use bentpipe_types::Span;

use super::bodies;
use super::net::{CLIENT, Net, SERVER, settings, two};

#[test]
fn every_byte_is_the_one_that_was_written() {
    let settings = two(|s| s.facing_tcp.send_buffer = 50_000);
    bodies::every_byte(Net::new(settings, &[1, 20, 1]));
}

/// A download is over: a minute of TIME-WAIT is left of it, and there may be thousands by then.
#[test]
fn what_is_over_keeps_no_bytes() {
    let mut net = Net::<Rings>::new(vec![settings(1)], &[1, 100]);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(1));
    let text = vec![1; 60_000];
    net.at(SERVER, |socket, cx| socket.write(Source::Bytes(&text), cx));
    net.run(Span::from_secs(1));
    let memory = |net: &Net<Rings>| -> Vec<usize> {
        let pairs = net.gateways[0].pairs.active();
        pairs
            .map(|pair| pair.legs.iter().flatten().map(|leg| leg.memory()).sum())
            .collect()
    };
    assert!(memory(&net)[0] > 0);
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
