//! Routes from a node.

use crate::{Address, Port};

/// The routing table of a node: the port for each destination.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    here: Address,
    table: Table,
}

#[derive(Clone, Debug, Default)]
enum Table {
    /// No route.
    #[default]
    None,
    /// One port for every destination.
    Default(Port),
    /// Ports for some destinations, sorted by address, and a default port.
    Upwards(Port, Vec<(Address, Port)>),
    /// A port per node address, `Port(u16::MAX)` if there is no route. Channels, whose addresses
    /// are above all node addresses, are in a sorted list.
    ByAddress(Box<[Port]>, Vec<(Address, Port)>),
}

const NOWHERE: Port = Port(u16::MAX);

/// Returns the port of a destination in a list sorted by address. Hosts below an access router
/// mostly have consecutive addresses; then the position follows without a search.
#[inline]
fn port_below(destination: Address, below: &[(Address, Port)]) -> Option<Port> {
    let (first, last) = (below.first()?.0, below.last()?.0);
    if destination < first || last < destination {
        return None;
    }
    match below.get(usize::from(destination.0 - first.0)) {
        Some((address, port)) if *address == destination => Some(*port),
        _ => search(destination, below),
    }
}

#[inline(never)]
fn search(destination: Address, below: &[(Address, Port)]) -> Option<Port> {
    let found = below.binary_search_by_key(&destination, |(address, _)| *address);
    found.ok().map(|place| below[place].1)
}

/// Inserts a destination into a list sorted by address.
fn insert(into: &mut Vec<(Address, Port)>, destination: Address, port: Port) {
    match into.binary_search_by_key(&destination, |(address, _)| *address) {
        Ok(place) => into[place].1 = port,
        Err(place) => into.insert(place, (destination, port)),
    }
}

impl Routes {
    /// Creates an empty table for the node `here` among `nodes`, with this many ports.
    #[must_use]
    pub fn new(here: Address, ports: usize, nodes: usize) -> Self {
        let table = if ports > 1 {
            Table::ByAddress(vec![NOWHERE; nodes].into(), Vec::new())
        } else {
            Table::None
        };
        Self { here, table }
    }

    /// Creates the table of a node with one port, which leads everywhere.
    #[must_use]
    pub fn by_default(here: Address, port: Port) -> Self {
        let table = Table::Default(port);
        Self { here, table }
    }

    /// Creates the table of an access router: `port` leads everywhere except to destinations added
    /// later.
    #[must_use]
    pub fn upwards(here: Address, port: Port) -> Self {
        let table = Table::Upwards(port, Vec::new());
        Self { here, table }
    }

    /// Returns the node that owns these routes.
    #[must_use]
    pub fn here(&self) -> Address {
        self.here
    }

    /// Adds a route to `destination` through `port`.
    pub fn add(&mut self, destination: Address, port: Port) {
        match &mut self.table {
            Table::ByAddress(_, channels) if destination.channel().is_some() => {
                insert(channels, destination, port);
            }
            Table::ByAddress(ports, _) => {
                if let Some(entry) = ports.get_mut(usize::from(destination.0)) {
                    *entry = port;
                }
            }
            Table::Upwards(_, below) => insert(below, destination, port),
            // A node with one port needs no table.
            table => *table = Table::Default(port),
        }
    }

    /// Returns the port towards `destination`.
    #[inline]
    #[must_use]
    pub fn port_towards(&self, destination: Address) -> Option<Port> {
        match &self.table {
            Table::None => None,
            Table::Default(port) => Some(*port),
            Table::Upwards(up, below) => Some(port_below(destination, below).unwrap_or(*up)),
            Table::ByAddress(ports, channels) => match ports.get(usize::from(destination.0)) {
                Some(port) => Some(*port).filter(|port| *port != NOWHERE),
                None => search(destination, channels),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_router_routes_unlisted_addresses_upwards() {
        let up = Port(9);
        for below in [
            vec![],
            vec![7],
            vec![4, 5, 6, 7],
            vec![0, 1, 2, 65_535],
            vec![3, 4, 9, 10, 11, 40],
        ] {
            let mut routes = Routes::upwards(Address(2_000), up);
            for address in below.iter().rev() {
                routes.add(Address(*address), Port(*address ^ 1));
            }
            for destination in (0..50).chain([65_534, 65_535]) {
                let port = below
                    .contains(&destination)
                    .then_some(Port(destination ^ 1));
                let found = routes.port_towards(Address(destination));
                assert_eq!(found, Some(port.unwrap_or(up)), "{below:?}, {destination}");
            }
        }
    }
}
