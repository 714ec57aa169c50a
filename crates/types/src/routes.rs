//! Which way a node sends what it sends.

use crate::{Address, Port};

/// Which port of a node leads to which address.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    here: Address,
    table: Table,
}

#[derive(Clone, Debug, Default)]
enum Table {
    /// No way out.
    #[default]
    None,
    /// One way out, for everything.
    Default(Port),
    /// Some by address, sorted, and one way out for everything else.
    Upwards(Port, Vec<(Address, Port)>),
    /// By address; `Port(u16::MAX)` where nothing leads.
    ByAddress(Box<[Port]>),
}

const NOWHERE: Port = Port(u16::MAX);

impl Routes {
    /// Routes of the node `here` among `nodes`, with this many ports: empty as yet.
    #[must_use]
    pub fn new(here: Address, ports: usize, nodes: usize) -> Self {
        let table = if ports > 1 {
            Table::ByAddress(vec![NOWHERE; nodes].into())
        } else {
            Table::None
        };
        Self { here, table }
    }

    /// Routes of the node `here`, which has one port: it leads everywhere.
    #[must_use]
    pub fn by_default(here: Address, port: Port) -> Self {
        let table = Table::Default(port);
        Self { here, table }
    }

    /// Routes of the node `here`, from which `port` leads everywhere but to what is added: an access
    /// router's.
    #[must_use]
    pub fn upwards(here: Address, port: Port) -> Self {
        let table = Table::Upwards(port, Vec::new());
        Self { here, table }
    }

    /// The node that these are the routes of.
    #[must_use]
    pub fn here(&self) -> Address {
        self.here
    }

    /// `port` leads to `destination`.
    pub fn add(&mut self, destination: Address, port: Port) {
        match &mut self.table {
            Table::ByAddress(ports) => {
                if let Some(entry) = ports.get_mut(usize::from(destination.0)) {
                    *entry = port;
                }
            }
            Table::Upwards(_, below) => {
                match below.binary_search_by_key(&destination, |(address, _)| *address) {
                    Ok(place) => below[place].1 = port,
                    Err(place) => below.insert(place, (destination, port)),
                }
            }
            // With one port there is one way, whatever the destination.
            table => *table = Table::Default(port),
        }
    }

    /// The port towards `destination`.
    #[must_use]
    pub fn port_towards(&self, destination: Address) -> Option<Port> {
        match &self.table {
            Table::None => None,
            Table::Default(port) => Some(*port),
            Table::Upwards(up, below) => {
                let found = below.binary_search_by_key(&destination, |(address, _)| *address);
                Some(found.map_or(*up, |place| below[place].1))
            }
            Table::ByAddress(ports) => ports
                .get(usize::from(destination.0))
                .copied()
                .filter(|port| *port != NOWHERE),
        }
    }
}
