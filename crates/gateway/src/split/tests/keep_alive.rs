//! Keep-alive probes of hosts through gateways.

use bentpipe_tcp::{KeepAlive, Ranges, State};
use bentpipe_types::{Flags, Span};

use super::test_network::{CLIENT, Net, SERVER, settings, two};
use crate::split::Settings;

/// A server that probes after each idle minute.
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

/// A host that missed the RST of a connection is reset when it next probes, as without a gateway.
#[test]
fn a_probing_host_is_reset_after_a_lost_rst() {
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

/// A host that is up answers, however often it is probed.
#[test]
fn a_host_that_answers_probes_stays_connected() {
    let mut net = asking(two(|_| {}), &[1, 250, 1]);
    let before = net.arrived[CLIENT];
    net.run(Span::from_secs(3_600));
    assert_eq!(
        [CLIENT, SERVER].map(|side| net.state(side)),
        [State::Established; 2]
    );
    // One probe each minute.
    let asked = net.arrived[CLIENT] - before;
    assert!((50..=60).contains(&asked), "{asked}");
}
