//! A router: sends each packet on, along the shortest path.

use bentpipe_types::{Address, Agent, Ctx, DropReason, PacketRef, Port, Time};

/// Which port leads to which address.
#[derive(Clone, Debug, Default)]
pub struct Routes(Table);

#[derive(Clone, Debug, Default)]
enum Table {
    /// No way out.
    #[default]
    None,
    /// One way out, for everything.
    Default(Port),
    /// By address; `Port(u16::MAX)` where nothing leads.
    ByAddress(Box<[Port]>),
}

const NOWHERE: Port = Port(u16::MAX);

impl Routes {
    /// Routes of a node among `nodes`, with these ports: empty as yet.
    pub(crate) fn new(ports: usize, nodes: usize) -> Self {
        Self(if ports > 1 {
            Table::ByAddress(vec![NOWHERE; nodes].into())
        } else {
            Table::None
        })
    }

    /// `port` leads to `destination`.
    pub(crate) fn add(&mut self, destination: Address, port: Port) {
        match &mut self.0 {
            Table::ByAddress(ports) => ports[usize::from(destination.0)] = port,
            // With one port there is one way, whatever the destination.
            table => *table = Table::Default(port),
        }
    }

    /// The port towards `destination`.
    #[must_use]
    pub fn port_towards(&self, destination: Address) -> Option<Port> {
        match &self.0 {
            Table::None => None,
            Table::Default(port) => Some(*port),
            Table::ByAddress(ports) => ports
                .get(usize::from(destination.0))
                .copied()
                .filter(|port| *port != NOWHERE),
        }
    }
}

/// A router without a queue of its own: packets wait at the links.
#[derive(Debug, Default)]
pub struct Router {
    routes: Routes,
}

impl Router {
    pub(crate) fn new(routes: Routes) -> Self {
        Self { routes }
    }
}

impl Agent for Router {
    fn on_packet(&mut self, _from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        match self
            .routes
            .port_towards(cx.packets.get(packet).destination.address)
        {
            Some(port) => cx.emit(port, packet),
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
