//! Hosts that ask whether the other is still there.

use bentpipe_tcp::{KeepAlive, Ranges, State};
use bentpipe_types::{Flags, Span};

use super::net::{CLIENT, Net, SERVER, settings, two};
use crate::split::Settings;

/// A server that asks every minute when it has heard nothing.
fn asking(gateways: Vec<Settings>, delays_ms: &[u64]) -> Net<Ranges> {
    let mut net: Net<Ranges> = Net::new(gateways, delays_ms);
    net.configs[SERVER].keep_alive = Some(KeepAlive {
        idle: Span::from_secs(60),
        interval: Span::from_secs(10),
        probes: 5,
    });
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    assert_eq!(net.state(SERVER), State::Established);
    net
}

/// Without a gateway, too, who is told by a RST that gets lost hears of it when it next asks.
#[test]
fn a_host_that_asks_hears_of_an_end_whose_reset_was_lost() {
    for (gateways, delays, lossy) in [
        (vec![settings(1)], vec![1, 250], 1),
        (vec![settings(0)], vec![250, 1], 0),
        (two(|_| {}), vec![1, 250, 1], 1),
    ] {
        let mut net = asking(gateways, &delays);
        let mut lost = 0;
        net.hook(
            lossy,
            Box::new(move |_, packet, packets| {
                let reset = packets.get(packet).flags.has(Flags::RST);
                lost += u32::from(reset);
                (!reset || lost > 1).then_some(())
            }),
        );
        net.at(CLIENT, |socket, cx| socket.abort(cx));
        net.run(Span::from_secs(50));
        assert_eq!(net.state(SERVER), State::Established, "it was lost");
        net.run(Span::from_secs(20));
        assert_eq!(net.state(SERVER), State::Closed, "{delays:?}");
        assert!(
            net.gateways
                .iter()
                .all(|gateway| gateway.has_no_connections())
        );
    }
}

/// And who is there answers, however often it is asked.
#[test]
fn who_is_asked_and_is_there_stays() {
    let mut net = asking(two(|_| {}), &[1, 250, 1]);
    let before = net.arrived[CLIENT];
    net.run(Span::from_secs(3_600));
    assert_eq!(
        [CLIENT, SERVER].map(|side| net.state(side)),
        [State::Established; 2]
    );
    // Once each minute.
    let asked = net.arrived[CLIENT] - before;
    assert!((50..=60).contains(&asked), "{asked}");
}
