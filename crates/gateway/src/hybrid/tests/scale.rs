//! Many connections: memory, and the cost of a packet.

use allocation_counter::measure;
use bentpipe_types::{Agent, Span, Time};

use super::super::Settings;
use super::fleet::Fleet;

#[test]
fn an_idle_connection_takes_less_than_a_kibibyte() {
    const CONNECTIONS: u16 = 10_000;
    let mut fleet = Fleet::new(Settings::default());
    for connection in 0..CONNECTIONS {
        fleet.open(connection);
    }
    let never_used = fleet.gateway.memory() / usize::from(CONNECTIONS);
    for connection in 0..CONNECTIONS {
        fleet.data(connection, 0, 1460);
        fleet.acknowledge(connection, 1460);
    }
    let busy = fleet.gateway.memory() / usize::from(CONNECTIONS);
    fleet.wait(Time::ZERO + Span::from_secs(60));
    let idle = fleet.gateway.memory() / usize::from(CONNECTIONS);
    assert_eq!(fleet.gateway.holdings().packets, 0);
    assert_eq!(fleet.world.packets.held(), 0);
    println!("never used {never_used}, busy {busy}, idle {idle} bytes");
    assert!(never_used < 1024, "{never_used}");
    assert!(idle < 1024, "{idle}");
}

/// Memory taken from the allocator, rather than what the table reports. The timers of an idle
/// connection have expired, except for that of its removal.
#[test]
fn an_idle_connection_keeps_less_than_a_kibibyte_of_the_allocator() {
    const CONNECTIONS: u16 = 10_000;
    let settings = Settings {
        connections: usize::from(CONNECTIONS),
        ..Settings::default()
    };
    for used in [false, true] {
        let mut gateway = None;
        let kept = measure(|| {
            let mut fleet = Fleet::new(settings.clone());
            for connection in 0..CONNECTIONS {
                fleet.open(connection);
                if used {
                    fleet.data(connection, 0, 1460);
                    fleet.acknowledge(connection, 1460);
                }
            }
            fleet.wait(Time::ZERO + Span::from_secs(60));
            assert_eq!(fleet.world.packets.held(), 0);
            gateway = Some(fleet.gateway);
        });
        let gateway = gateway.expect("it was made");
        let said = gateway.memory() / usize::from(CONNECTIONS);
        let each = kept.bytes_current / i64::from(CONNECTIONS);
        println!("used {used}: {each} bytes of the allocator, {said} by the table's own account");
        assert!(each < 1024, "used {used}: {each}");
        assert!(said.abs_diff(each as usize) < 64, "{said} and {each}");
    }
}

#[test]
fn the_cost_of_a_packet_does_not_depend_on_other_connections() {
    let mut fleet = Fleet::new(Settings::default());
    for connection in [1, 2] {
        fleet.open(connection);
    }
    for segment in 0..20 {
        fleet.data(1, segment * 1000, 1000);
    }
    assert_eq!(fleet.gateway.holdings().packets, 20);
    fleet.acknowledge(2, 5_000);
    assert_eq!(fleet.gateway.holdings().packets, 20);
    fleet.acknowledge(1, 20_000);
    assert_eq!(fleet.gateway.holdings().packets, 0);
}
