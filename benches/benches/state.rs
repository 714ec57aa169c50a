//! Measures a gateway's memory per connection, both legs included, by the allocations of ten
//! thousand connections.

use allocation_counter::measure;
use bentpipe_benches::gateways::{Fleet, hybrid, split};
use bentpipe_types::{Agent, Span};

const CONNECTIONS: u16 = 10_000;

fn main() {
    print_memory("split", split);
    print_memory("hybrid", hybrid);
}

/// Prints the memory of new connections, after 29 kB each, and after a minute of silence.
fn print_memory<A: Agent>(kind: &str, make: fn() -> A) {
    let mut kept = None;
    let mut bytes = 0;
    let mut per_connection = |act: &mut dyn FnMut(&mut Option<Fleet<A>>)| {
        bytes += measure(|| act(&mut kept)).bytes_current;
        bytes / i64::from(CONNECTIONS)
    };
    let opened = per_connection(&mut |fleet| *fleet = Some(Fleet::new(make(), CONNECTIONS)));
    let used = per_connection(&mut |fleet| fleet.iter_mut().for_each(|fleet| fleet.transfer(20)));
    let idle = per_connection(&mut |fleet| {
        if let Some(fleet) = fleet {
            fleet.wait(Span::from_secs(60));
        }
    });
    println!("{kind} gateway, bytes of a connection: opened {opened}, used {used}, idle {idle}");
}
