//! Liveness probes between two gateways: when a failure is detected, what probing costs, and that
//! outages reset no connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bentpipe_tcp::{Events, State};
use bentpipe_types::{Address, Agent, Flags, IcmpError, Packet, PacketStore, Port, Span, Time};

use super::Net;
use super::common_cases::{self, ms, read, write};
use super::test_network::{CLIENT, SERVER, gateway, multiplexed, settings};
use crate::ConnectionClass;
use crate::split::Confirmation;

const HOPS: [u64; 3] = [1, 250, 2];

/// Returns a network with an open connection that has been idle for 5 seconds.
fn idle(connections: usize) -> Net {
    let mut net = Net::new(multiplexed(connections, |_| {}), &HOPS);
    net.connect(CLIENT, 7);
    let both = |net: &Net| [CLIENT, SERVER].map(|side| net.state(side)) == [State::Established; 2];
    assert!(net.run_until(ms(5_000), both));
    net.run(Span::from_secs(3));
    forget_events(&mut net);
    net
}

fn forget_events(net: &mut Net) {
    for side in [CLIENT, SERVER] {
        net.at(side, |socket, _| socket.take_events());
    }
}

/// Drops all packets on the satellite link before `from` and after `until`, and passes those in
/// between.
fn outage(net: &mut Net, from: Time, until: Time) {
    net.hook(
        1,
        Box::new(move |now, _, _| (now < from || now >= until).then_some(())),
    );
}

/// Kills a gateway's process. The kernel then forwards what arrives.
fn kill(net: &mut Net, which: usize) {
    let mut plain = settings(1 - which as u16);
    plain.only = Some(ConnectionClass {
        ports: Some(Vec::new()),
        hosts: None,
        prefixes: None,
    });
    net.gateways[which] = gateway(which, plain);
}

/// Starts the gateway again.
fn start(net: &mut Net, which: usize, connections: usize) {
    let settings = multiplexed(connections, |_| {}).swap_remove(which);
    net.gateways[which] = gateway(which, settings);
    net.restart(which);
}

/// Returns the time until this host's connection is reset, within a limit.
fn time_to_reset(net: &mut Net, side: usize, limit: Span) -> Option<Span> {
    let begin = net.world.now;
    while net.world.now < begin + limit {
        net.run(Span::from_millis(10));
        if net
            .at(side, |socket, _| socket.take_events())
            .has(Events::RESET)
        {
            return Some(net.world.now.since(begin));
        }
    }
    None
}

fn said(net: &Net, which: usize) -> &'static str {
    net.gateways[which].remark().unwrap_or_default()
}

/// Returns the time until the client's new connection is open.
fn time_to_open(net: &mut Net) -> Span {
    net.hosts = [None, None];
    net.client_port += 1;
    let begin = net.world.now;
    net.connect(CLIENT, 70);
    let open = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(begin + Span::from_secs(20), open));
    net.world.now.since(begin)
}

#[test]
fn a_crashed_gateway_is_detected_on_an_idle_link() {
    for which in [0, 1] {
        let mut net = idle(1);
        kill(&mut net, 1 - which);
        let host = [CLIENT, SERVER][which];
        let after = time_to_reset(&mut net, host, Span::from_secs(200)).expect("it hears");
        // The first probe is sent 20 s after the last segment, or after 30 s at the gateway that
        // probes second. Then follow 12 probes, one every 5 s.
        let seconds = after.as_nanos() / 1_000_000_000;
        assert!((75..=90).contains(&seconds), "{which}: {after:?}");
        assert!(said(&net, which).contains("silent for too long"));
        for (name, count) in [
            ("failed", 1),
            ("silent", 1),
            ("reset", 1),
            ("connections", 0),
        ] {
            assert_eq!(
                net.count(which, &format!("multiplex.{name}")),
                count,
                "{name}"
            );
        }
        assert_eq!(net.count(which, "connections.aborted"), 1);
    }
}

/// Both hosts are reset, also an idle one on the side of the gateway that has lost its state. The
/// other gateway sends that host a segment, and the host that was reset answers the resulting ACK
/// with a RST.
#[test]
fn both_hosts_are_reset_when_a_gateway_restarts() {
    for which in [0, 1] {
        let mut net = idle(1);
        net.restart(which);
        let host = [CLIENT, SERVER][which];
        let after = time_to_reset(&mut net, host, Span::from_secs(10)).expect("it hears");
        // SYN, answer and RST; then the challenge, its answer and another RST.
        assert!(after <= Span::from_millis(1_530), "{after:?}");
    }
    // Without a restart, both are reset when the probes have failed.
    for which in [0, 1] {
        let mut net = idle(1);
        kill(&mut net, which);
        let host = [CLIENT, SERVER][which];
        let after = time_to_reset(&mut net, host, Span::from_secs(200)).expect("it hears");
        assert!(
            (75..=91).contains(&(after.as_nanos() / 1_000_000_000)),
            "{after:?}"
        );
    }
}

/// A host that was answered early, before the failure was detected, is reset together with the
/// older connections.
#[test]
fn a_host_answered_early_in_vain_is_reset_with_the_trunk() {
    let mut net = Net::new(multiplexed(1, |s| s.set_up = Confirmation::Early), &HOPS);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    kill(&mut net, 1);
    assert_eq!(time_to_open(&mut net), Span::from_millis(2));
    write(&mut net, CLIENT, 1_000);
    let after = time_to_reset(&mut net, CLIENT, Span::from_secs(200)).expect("it hears");
    assert!(
        (60..=63).contains(&(after.as_nanos() / 1_000_000_000)),
        "{after:?}"
    );
    // Connections opened while the peer is suspected down are split without a trunk.
    assert!(time_to_open(&mut net) < Span::from_secs(1));
}

#[test]
fn a_restarted_gateway_announces_itself() {
    for connections in [1, 4] {
        for which in [0, 1] {
            let mut net = idle(connections);
            net.restart(which);
            let host = [SERVER, CLIENT][which];
            let after = time_to_reset(&mut net, host, Span::from_secs(10)).expect("it hears");
            // SYN, answer and RST: three times one way, and the LAN.
            assert!(after <= Span::from_millis(760), "{after:?}");
            assert!(said(&net, 1 - which).contains("restarted"));
            // The next trunk is open by then.
            net.run(Span::from_secs(3));
            assert!(said(&net, 1 - which).contains("gateway answers"));
            let took = time_to_open(&mut net);
            assert_eq!(took, Span::from_millis(506));
        }
    }
}

/// One of four trunks was reset by the restarted gateway. The others are probed at once.
#[test]
fn a_restart_resets_connections_on_all_trunks() {
    let mut net = idle(4);
    let first = std::mem::take(&mut net.hosts);
    // The second connection uses another trunk.
    time_to_open(&mut net);
    net.run(Span::from_secs(3));
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.restart(1);
    forget_events(&mut net);
    let second = time_to_reset(&mut net, CLIENT, Span::from_secs(10)).expect("it hears");
    let second = second.as_nanos() / 1_000_000;
    assert!(second <= 1_260, "{second}");
    assert_eq!(net.count(0, "multiplex.failed"), 2);
    assert_eq!(net.count(0, "multiplex.reset"), 2);
    net.hosts = first;
}

#[test]
fn connections_open_without_a_trunk_while_the_peer_is_down() {
    for connections in [1, 3] {
        let mut net = idle(connections);
        kill(&mut net, 1);
        // The failure is not detected yet, so the connection waits for the trunk.
        assert_eq!(time_to_open(&mut net), Span::from_millis(3_506));
        common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
        assert!(said(&net, 0).contains("is silent"));
        // From then on connections open at once, without a trunk.
        for _ in 0..5 {
            assert_eq!(time_to_open(&mut net), Span::from_millis(506));
            common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
        }
        net.run(Span::from_secs(60));
        assert!(said(&net, 0).contains("silent for too long"));
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
        common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
        assert_eq!(net.count(0, "connections.split"), 8);
        // The other gateway is up again.
        start(&mut net, 1, connections);
        net.run(Span::from_secs(5));
        assert!(said(&net, 0).contains("gateway answers"));
        let split = net.count(1, "connections.split");
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
        assert_eq!(net.count(1, "connections.split"), split + 1);
        assert_eq!(net.gateways[1].pairs.len(), 0, "it is a stream");
    }
}

/// A connection has a stream and a fallback connection. Data that arrives over the latter before
/// its answer is no reason for a RST.
#[test]
fn data_before_the_answer_does_not_reset_a_fallback_connection() {
    let mut net = idle(1);
    kill(&mut net, 1);
    let mut first = true;
    let resets = Rc::new(Cell::new(0));
    let seen = Rc::clone(&resets);
    let answer_is_lost = move |_, packet, packets: &mut PacketStore| {
        let record = packets.get_mut(packet);
        seen.set(seen.get() + u32::from(record.flags.has(Flags::RST)));
        if record.source.port == 80 && record.flags.has(Flags::SYN) && first {
            first = false;
            record.flags = Flags::ACK;
            record.sequence += 1;
        }
        Some(())
    };
    net.hook(1, Box::new(answer_is_lost));
    // The SYN is retransmitted a second later.
    assert_eq!(time_to_open(&mut net), Span::from_millis(4_506));
    assert_eq!(resets.get(), 0);
    common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
}

/// With all kinds of data in flight, and outages of up to a minute.
#[test]
fn an_outage_resets_no_connection_and_data_resumes_soon_after() {
    for connections in [1, 3] {
        for seconds in [1, 2, 4, 7, 13, 30, 58] {
            for (from_client, from_server) in [(0, 0), (2_000, 0), (0, 100_000), (100_000, 100_000)]
            {
                let mut net = idle(connections);
                for (side, bytes) in [(CLIENT, from_client), (SERVER, from_server)] {
                    write(&mut net, side, bytes);
                }
                net.run(Span::from_millis(200));
                let end = net.world.now + Span::from_secs(seconds);
                let begin = net.world.now;
                outage(&mut net, begin, end);
                net.run(Span::from_secs(seconds));
                let there = move |net: &Net| {
                    let readable =
                        |side: usize| net.hosts[side].as_ref().map_or(0, |s| s.readable());
                    readable(SERVER) == from_client && readable(CLIENT) == from_server
                };
                // A probe is sent every 5 s, its answer takes half a second, and 70 segments take 7
                // round trips in slow start from one segment.
                let late = Span::from_millis(5_000 + 500 + 7 * 500 + 100);
                let what = format!("{connections}, {seconds} s, {from_client} and {from_server}");
                assert!(net.run_until(end + late, there), "{what}");
                for gateway in [0, 1] {
                    assert_eq!(net.count(gateway, "multiplex.failed"), 0, "{what}");
                }
                for side in [CLIENT, SERVER] {
                    assert_eq!(net.state(side), State::Established, "{what}");
                    read(&mut net, side);
                }
                net.run(Span::from_secs(40));
                common_cases::exchange(&mut net, 5_000, Span::from_secs(5));
            }
        }
    }
}

/// A middlebox has forgotten one trunk. New connections use the other one, whose connections go on.
#[test]
fn a_silent_trunk_does_not_affect_the_others() {
    let mut net = idle(2);
    let first = std::mem::take(&mut net.hosts);
    time_to_open(&mut net);
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.hook(
        1,
        Box::new(|_, packet, packets| {
            let record = packets.get(packet);
            let lost = record.source.port == 3135 && record.destination.port == 3135;
            (!lost).then_some(())
        }),
    );
    // The second trunk is busy all the time.
    for _ in 0..300 {
        write(&mut net, CLIENT, 100);
        net.run(Span::from_secs(1));
    }
    assert_eq!(read(&mut net, SERVER), 30_000);
    assert_eq!(net.state(CLIENT), State::Established);
    for gateway in [0, 1] {
        assert_eq!(net.count(gateway, "multiplex.silent"), 1);
        assert_eq!(net.count(gateway, "multiplex.reset"), 1);
    }
    // The next connection starts an attempt to open the other trunk, in vain, and does not wait for
    // it.
    for _ in 0..3 {
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
    }
    assert_eq!(net.gateways[0].pairs.len(), 0);
    // Once the middlebox forwards again, a connection opened 10 s later uses the new trunk.
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.hook(1, Box::new(|_, _, _| Some(())));
    net.run(Span::from_secs(10));
    for _ in 0..2 {
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
        net.run(Span::from_secs(1));
    }
    assert_eq!(net.count(1, "multiplex.connections"), 2);
    assert_eq!(net.gateways[0].pairs.len(), 0);
    drop(first);
}

/// Packets to the other gateway that were lost.
type Lost = Rc<RefCell<Vec<Packet>>>;

/// Removes the other gateway's network from the routes.
fn drop_unreachable(net: &mut Net) -> Lost {
    let lost = Lost::default();
    let seen = Rc::clone(&lost);
    net.hook(
        1,
        Box::new(move |_, packet, packets| {
            let record = packets.get(packet);
            let own = record.source.address.0 >= 10 && record.destination.address.0 >= 10;
            if own {
                seen.borrow_mut().push(*record);
            }
            (!own).then_some(())
        }),
    );
    lost
}

/// A router reports each lost packet to the first gateway, 100 ms later, for this time.
fn told(net: &mut Net, lost: &Lost, error: IcmpError, span: Span) {
    let end = net.world.now + span;
    while net.world.now < end {
        net.run(Span::from_millis(100));
        for segment in lost.take().iter().filter(|one| one.source.address.0 == 10) {
            let said = Packet::icmp_error(Address(9), segment, error).expect("about TCP");
            let said = net.world.packets.insert(said);
            net.gateways[0].on_packet(Port(1), said, &mut net.world.cx());
            net.carry(1);
        }
    }
}

#[test]
fn an_icmp_error_makes_the_peer_suspected_at_once() {
    for (error, heard) in [
        (IcmpError::NetworkUnreachable, true),
        (IcmpError::HostUnreachable, true),
        (IcmpError::PortUnreachable, true),
        (IcmpError::Prohibited, true),
        (IcmpError::ParameterProblem, false),
    ] {
        for connections in [1, 3] {
            let mut net = idle(connections);
            let before = std::mem::take(&mut net.hosts);
            let lost = drop_unreachable(&mut net);
            // Like the router beyond the link: the kernel forwards packets for the hosts.
            kill(&mut net, 1);
            net.client_port += 1;
            net.connect(CLIENT, 70);
            told(&mut net, &lost, error, Span::from_millis(700));
            let open = net.state(CLIENT) == State::Established;
            assert_eq!(open, heard, "{error:?}");
            assert_eq!(said(&net, 0).contains("is silent"), heard);
            // No trunk is given up for that.
            assert_eq!(net.count(0, "multiplex.failed"), 0);
            if heard {
                common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
                assert_eq!(time_to_open(&mut net), Span::from_millis(506));
            }
            drop(before);
        }
    }
}

#[test]
fn an_icmp_error_about_a_probe_counts_and_a_wrong_one_resets_nothing() {
    let mut net = idle(2);
    let lost = drop_unreachable(&mut net);
    // All is idle, and the next probe is 20 or 30 s away.
    told(
        &mut net,
        &lost,
        IcmpError::HostUnreachable,
        Span::from_secs(31),
    );
    assert!(said(&net, 0).contains("is silent"));
    net.hook(1, Box::new(|_, _, _| Some(())));
    // The following probe is answered.
    net.run(Span::from_secs(6));
    assert!(said(&net, 0).contains("gateway answers"));
    assert_eq!(net.count(0, "multiplex.failed"), 0);
    assert_eq!(net.state(CLIENT), State::Established);
    common_cases::exchange(&mut net, 5_000, Span::from_secs(5));
}

#[test]
fn an_icmp_error_with_a_guessed_sequence_number_is_ignored() {
    let mut net = idle(1);
    let lost = drop_unreachable(&mut net);
    write(&mut net, CLIENT, 100);
    net.run(Span::from_millis(100));
    net.hook(1, Box::new(|_, _, _| Some(())));
    for segment in &mut *lost.borrow_mut() {
        segment.sequence += 1_000_000;
    }
    told(
        &mut net,
        &lost,
        IcmpError::HostUnreachable,
        Span::from_millis(100),
    );
    assert_eq!(said(&net, 0), "");
    net.run(Span::from_secs(2));
    assert_eq!(read(&mut net, SERVER), 100);
}

/// The SYN of the first trunk is lost.
#[test]
fn an_icmp_error_about_the_first_syn_ends_the_wait() {
    let errors = [IcmpError::HostUnreachable, IcmpError::PortUnreachable];
    for error in errors {
        let mut net = Net::new(multiplexed(2, |_| {}), &HOPS);
        let lost = drop_unreachable(&mut net);
        kill(&mut net, 1);
        net.connect(CLIENT, 7);
        told(&mut net, &lost, error, Span::from_millis(700));
        assert_eq!(net.state(CLIENT), State::Established, "{error:?}");
        assert!(said(&net, 0).contains("does not answer"));
        common_cases::exchange(&mut net, 50_000, Span::from_secs(5));
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
        // The handshake goes on, and later connections use the trunk.
        start(&mut net, 1, 2);
        net.hook(1, Box::new(|_, _, _| Some(())));
        net.run(Span::from_secs(5));
        assert!(said(&net, 0).contains("gateway answers"));
        assert_eq!(time_to_open(&mut net), Span::from_millis(506));
        assert_eq!(net.gateways[1].pairs.len(), 0, "it is a stream");
    }
}

/// Cost of probing on an idle link: packets and bytes in each direction, per hour.
#[test]
fn probing_costs_next_to_nothing() {
    for connections in [1, 4, 16] {
        let mut net = Net::new(multiplexed(connections, |_| {}), &HOPS);
        // All trunks are open.
        for _ in 0..connections {
            net.connect(CLIENT, 7);
            net.run(Span::from_secs(3));
            net.hosts = [None, None];
            net.client_port += 1;
        }
        assert_eq!(net.count(0, "multiplex.connections"), connections as u64);
        net.run(Span::from_secs(100));
        let crossed = Rc::new(Cell::new([(0_u64, 0_u64); 2]));
        let counts = Rc::clone(&crossed);
        net.hook(
            1,
            Box::new(move |_, packet, packets| {
                let mut each = counts.get();
                let way = &mut each[usize::from(packets.get(packet).source.address.0 == 11)];
                *way = (way.0 + 1, way.1 + packets.get(packet).length().get());
                counts.set(each);
                Some(())
            }),
        );
        net.run(Span::from_secs(3_600));
        for (packets, bytes) in crossed.get() {
            // One probe every 20 s, or every 20 s and a round trip.
            assert!((175..=181).contains(&packets), "{connections}: {packets}");
            assert_eq!(bytes, packets * 52);
        }
        assert!(
            net.gateways
                .iter()
                .all(|gateway| gateway.is_quiet() || gateway.holdings().packets == 0)
        );
    }
}
