//! Two gateways ask each other whether they live: what is noticed when, what it costs, and what an outage does not break.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bentpipe_tcp::{Events, State};
use bentpipe_types::{Address, Agent, Flags, IcmpError, Packet, PacketStore, Port, Span, Time};

use super::Net;
use super::bodies::{self, ms, read, write};
use super::net::{CLIENT, SERVER, gateway, multiplexed, settings};
use crate::ConnectionClass;
use crate::split::Confirmation;

const HOPS: [u64; 3] = [1, 250, 2];

/// A connection is open, and idle since so long.
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

/// Lets only what is between these times by over the satellite.
fn outage(net: &mut Net, from: Time, until: Time) {
    net.hook(
        1,
        Box::new(move |now, _, _| (now < from || now >= until).then_some(())),
    );
}

/// A gateway's process is killed, and the kernel forwards what comes.
fn kill(net: &mut Net, which: usize) {
    let mut plain = settings(1 - which as u16);
    plain.only = Some(ConnectionClass {
        ports: Some(Vec::new()),
        hosts: None,
    });
    net.gateways[which] = gateway(which, plain);
}

/// It is started again.
fn start(net: &mut Net, which: usize, connections: usize) {
    let settings = multiplexed(connections, |_| {}).swap_remove(which);
    net.gateways[which] = gateway(which, settings);
    net.restart(which);
}

/// How long until this host hears that its connection is reset, within a limit.
fn reset_after(net: &mut Net, side: usize, limit: Span) -> Option<Span> {
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

/// How long until the client has its connection.
fn opens_after(net: &mut Net) -> Span {
    net.hosts = [None, None];
    net.client_port += 1;
    let begin = net.world.now;
    net.connect(CLIENT, 70);
    let open = |net: &Net| net.state(CLIENT) == State::Established;
    assert!(net.run_until(begin + Span::from_secs(20), open));
    net.world.now.since(begin)
}

#[test]
fn a_gateway_that_is_gone_is_missed_although_nobody_says_anything() {
    for which in [0, 1] {
        let mut net = idle(1);
        kill(&mut net, 1 - which);
        let host = [CLIENT, SERVER][which];
        let after = reset_after(&mut net, host, Span::from_secs(200)).expect("it hears");
        // 20 s after the last word it is asked, or, at the gateway that asks only if it is not asked itself, after 30 s; and then 12 times,
        // every 5 s.
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

/// Both hosts hear of it, that on the side of the gateway that has forgotten everything, too, who waits and says nothing: it is
/// asked by the other gateway, and answered by the host that was reset.
#[test]
fn a_host_beside_a_gateway_that_begins_anew_hears_of_it_too() {
    for which in [0, 1] {
        let mut net = idle(1);
        net.restart(which);
        let host = [CLIENT, SERVER][which];
        let after = reset_after(&mut net, host, Span::from_secs(10)).expect("it hears");
        // The SYN, the answer, and the RST; the question, its answer, and another RST.
        assert!(after <= Span::from_millis(1_530), "{after:?}");
    }
    // Where it is not started again, when it is missed.
    for which in [0, 1] {
        let mut net = idle(1);
        kill(&mut net, which);
        let host = [CLIENT, SERVER][which];
        let after = reset_after(&mut net, host, Span::from_secs(200)).expect("it hears");
        assert!(
            (75..=91).contains(&(after.as_nanos() / 1_000_000_000)),
            "{after:?}"
        );
    }
}

/// Who was answered early by a gateway that did not know yet is told as soon as those who were there before.
#[test]
fn who_was_answered_early_in_vain_is_reset_with_the_persistent_connection() {
    let mut net = Net::new(multiplexed(1, |s| s.set_up = Confirmation::Early), &HOPS);
    net.connect(CLIENT, 7);
    net.run(Span::from_secs(5));
    kill(&mut net, 1);
    assert_eq!(opens_after(&mut net), Span::from_millis(2));
    write(&mut net, CLIENT, 1_000);
    let after = reset_after(&mut net, CLIENT, Span::from_secs(200)).expect("it hears");
    assert!(
        (60..=63).contains(&(after.as_nanos() / 1_000_000_000)),
        "{after:?}"
    );
    // What comes once it is doubted goes round it.
    assert!(opens_after(&mut net) < Span::from_secs(1));
}

#[test]
fn a_gateway_that_begins_anew_says_so_itself() {
    for connections in [1, 4] {
        for which in [0, 1] {
            let mut net = idle(connections);
            net.restart(which);
            let host = [SERVER, CLIENT][which];
            let after = reset_after(&mut net, host, Span::from_secs(10)).expect("it hears");
            // Its SYN, the answer, and the RST: one way three times, and the LAN.
            assert!(after <= Span::from_millis(760), "{after:?}");
            assert!(said(&net, 1 - which).contains("begun anew"));
            // The next is there by then.
            net.run(Span::from_secs(3));
            assert!(said(&net, 1 - which).contains("gateway answers"));
            let took = opens_after(&mut net);
            assert_eq!(took, Span::from_millis(506));
        }
    }
}

/// Of four persistent connections one has told that the other gateway began anew. The others are asked.
#[test]
fn who_has_a_connection_on_another_hears_of_it_as_well() {
    let mut net = idle(4);
    let first = std::mem::take(&mut net.hosts);
    // The second goes over another one.
    opens_after(&mut net);
    net.run(Span::from_secs(3));
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.restart(1);
    forget_events(&mut net);
    let second = reset_after(&mut net, CLIENT, Span::from_secs(10)).expect("it hears");
    let second = second.as_nanos() / 1_000_000;
    assert!(second <= 1_260, "{second}");
    assert_eq!(net.count(0, "multiplex.failed"), 2);
    assert_eq!(net.count(0, "multiplex.reset"), 2);
    net.hosts = first;
}

#[test]
fn what_is_opened_when_the_other_gateway_is_gone_goes_round_it() {
    for connections in [1, 3] {
        let mut net = idle(connections);
        kill(&mut net, 1);
        // Nobody has missed it yet: it is waited for.
        assert_eq!(opens_after(&mut net), Span::from_millis(3_506));
        bodies::exchange(&mut net, 50_000, Span::from_secs(5));
        assert!(said(&net, 0).contains("is silent"));
        // From then on at once, by parts of their own.
        for _ in 0..5 {
            assert_eq!(opens_after(&mut net), Span::from_millis(506));
            bodies::exchange(&mut net, 50_000, Span::from_secs(5));
        }
        net.run(Span::from_secs(60));
        assert!(said(&net, 0).contains("silent for too long"));
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
        bodies::exchange(&mut net, 50_000, Span::from_secs(5));
        assert_eq!(net.count(0, "connections.split"), 8);
        // It is back.
        start(&mut net, 1, connections);
        net.run(Span::from_secs(5));
        assert!(said(&net, 0).contains("gateway answers"));
        let split = net.count(1, "connections.split");
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
        assert_eq!(net.count(1, "connections.split"), split + 1);
        assert_eq!(net.gateways[1].pairs.len(), 0, "it is a stream");
    }
}

/// A connection opens over a part beside its stream, and what follows the answer comes before it: the part waits.
#[test]
fn what_comes_before_the_answer_over_a_part_is_no_reason_to_reset_it() {
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
    // The SYN goes again a second later.
    assert_eq!(opens_after(&mut net), Span::from_millis(4_506));
    assert_eq!(resets.get(), 0);
    bodies::exchange(&mut net, 50_000, Span::from_secs(5));
}

/// Whatever is under way, and however long it lasts, up to a minute.
#[test]
fn an_outage_breaks_no_connection_and_what_waited_goes_on_soon_after() {
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
                // A question is on its way every 5 s, its answer comes half a second later, and 70 segments take 7 round trips, from
                // one segment on.
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
                bodies::exchange(&mut net, 5_000, Span::from_secs(5));
            }
        }
    }
}

/// A filter has forgotten one of the persistent connections: what is opened goes over the other, and who is on it goes on.
#[test]
fn one_that_is_silent_alone_takes_nobody_else_along() {
    let mut net = idle(2);
    let first = std::mem::take(&mut net.hosts);
    opens_after(&mut net);
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.hook(
        1,
        Box::new(|_, packet, packets| {
            let record = packets.get(packet);
            let lost = record.source.port == 3135 && record.destination.port == 3135;
            (!lost).then_some(())
        }),
    );
    // The second says something all the time.
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
    // The next one has the other asked for, in vain, and does not wait for that.
    for _ in 0..3 {
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
    }
    assert_eq!(net.gateways[0].pairs.len(), 0);
    // It was asked for: when the filter is gone, that goes over it again which is opened 10 s later.
    assert_eq!(net.count(0, "multiplex.connections"), 2);
    net.hook(1, Box::new(|_, _, _| Some(())));
    net.run(Span::from_secs(10));
    for _ in 0..2 {
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
        net.run(Span::from_secs(1));
    }
    assert_eq!(net.count(1, "multiplex.connections"), 2);
    assert_eq!(net.gateways[0].pairs.len(), 0);
    drop(first);
}

/// What was sent to the other gateway, and did not get there.
type Lost = Rc<RefCell<Vec<Packet>>>;

/// The other gateway's network has no way to it any more.
fn out_of_reach(net: &mut Net) -> Lost {
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

/// A router tells the first gateway so of each, 100 ms later, for as long.
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
fn what_a_router_says_of_the_other_gateway_is_heard_at_once() {
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
            let lost = out_of_reach(&mut net);
            // As the router beyond the link would: the kernel forwards what is for the hosts.
            kill(&mut net, 1);
            net.client_port += 1;
            net.connect(CLIENT, 70);
            told(&mut net, &lost, error, Span::from_millis(700));
            let open = net.state(CLIENT) == State::Established;
            assert_eq!(open, heard, "{error:?}");
            assert_eq!(said(&net, 0).contains("is silent"), heard);
            // None is given up for that.
            assert_eq!(net.count(0, "multiplex.failed"), 0);
            if heard {
                bodies::exchange(&mut net, 50_000, Span::from_secs(5));
                assert_eq!(opens_after(&mut net), Span::from_millis(506));
            }
            drop(before);
        }
    }
}

#[test]
fn what_a_router_says_of_a_question_is_heard_and_one_that_errs_costs_nobody_anything() {
    let mut net = idle(2);
    let lost = out_of_reach(&mut net);
    // Nobody says anything: the next question is 20 or 30 s off.
    told(
        &mut net,
        &lost,
        IcmpError::HostUnreachable,
        Span::from_secs(31),
    );
    assert!(said(&net, 0).contains("is silent"));
    net.hook(1, Box::new(|_, _, _| Some(())));
    // And the one after it has its answer.
    net.run(Span::from_secs(6));
    assert!(said(&net, 0).contains("gateway answers"));
    assert_eq!(net.count(0, "multiplex.failed"), 0);
    assert_eq!(net.state(CLIENT), State::Established);
    bodies::exchange(&mut net, 5_000, Span::from_secs(5));
}

#[test]
fn who_guesses_at_what_was_sent_has_nobody_doubted() {
    let mut net = idle(1);
    let lost = out_of_reach(&mut net);
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

/// The first persistent connection's SYN gets nowhere.
#[test]
fn what_a_router_says_of_the_first_syn_has_nobody_wait() {
    let errors = [IcmpError::HostUnreachable, IcmpError::PortUnreachable];
    for error in errors {
        let mut net = Net::new(multiplexed(2, |_| {}), &HOPS);
        let lost = out_of_reach(&mut net);
        kill(&mut net, 1);
        net.connect(CLIENT, 7);
        told(&mut net, &lost, error, Span::from_millis(700));
        assert_eq!(net.state(CLIENT), State::Established, "{error:?}");
        assert!(said(&net, 0).contains("does not answer"));
        bodies::exchange(&mut net, 50_000, Span::from_secs(5));
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
        // It is still asked, and what comes later goes over it.
        start(&mut net, 1, 2);
        net.hook(1, Box::new(|_, _, _| Some(())));
        net.run(Span::from_secs(5));
        assert!(said(&net, 0).contains("gateway answers"));
        assert_eq!(opens_after(&mut net), Span::from_millis(506));
        assert_eq!(net.gateways[1].pairs.len(), 0, "it is a stream");
    }
}

/// What asking costs, on a link on which nothing else is said: packets and bytes, each way, in an hour.
#[test]
fn to_ask_costs_next_to_nothing() {
    for connections in [1, 4, 16] {
        let mut net = Net::new(multiplexed(connections, |_| {}), &HOPS);
        // All of them are open.
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
            // One every 20 s, or every 20 s and a round trip.
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
