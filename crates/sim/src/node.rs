//! The nodes of a network.

use bentpipe_host::Host;
use bentpipe_tcp::Ranges;
use bentpipe_types::{
    Address, Agent, Ctx, Gauge, Holdings, Managed, PacketRef, Port, Routes, StreamCheck, Time,
};

use crate::Router;
use crate::attached::Attached;
use crate::processing_and_arp::ProcessingAndArp;
use crate::stand_in::StandIn;

/// A node of a network being built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeId(pub(crate) u16);

impl NodeId {
    /// Returns an identifier for a multicast channel, for use as a destination.
    #[must_use]
    pub fn of_channel(channel: Address) -> Option<Self> {
        channel.channel().map(|_| Self(channel.0))
    }

    /// Returns the node's address.
    #[must_use]
    pub fn address(self) -> Address {
        Address(self.0)
    }
}

/// A node of a network.
///
/// A host is stored inline, not behind a pointer: in a network of many users, each step from a
/// packet to its connection costs a cache miss.
#[expect(
    clippy::large_enum_variant,
    reason = "most nodes of a large network are hosts"
)]
pub(crate) enum Node {
    Host(Host<Ranges>),
    Router(Router),
    Attached(Attached),
    Custom(Box<dyn Agent + Send>),
    /// Another node with a processor or address resolution.
    ProcessingAndArp(Box<ProcessingAndArp<Node>>),
    /// Of a divided network: a node of another part.
    StandIn(StandIn),
}

impl Node {
    /// Returns the host, if the node is one.
    #[inline]
    pub(crate) fn host(&self) -> Option<&Host<Ranges>> {
        match self {
            Self::Host(host) => Some(host),
            Self::ProcessingAndArp(front) => front.node().host(),
            Self::Router(_) | Self::Attached(_) | Self::Custom(_) | Self::StandIn(_) => None,
        }
    }

    /// Returns the host, if the node is one.
    pub(crate) fn host_mut(&mut self) -> Option<&mut Host<Ranges>> {
        match self {
            Self::Host(host) => Some(host),
            Self::ProcessingAndArp(front) => front.node_mut().host_mut(),
            Self::Router(_) | Self::Attached(_) | Self::Custom(_) | Self::StandIn(_) => None,
        }
    }

    /// Whether it is neither a host, a router nor an attached node.
    pub(crate) fn is_custom(&self) -> bool {
        match self {
            Self::Custom(_) => true,
            Self::ProcessingAndArp(front) => front.node().is_custom(),
            Self::Host(_) | Self::Router(_) | Self::Attached(_) | Self::StandIn(_) => false,
        }
    }

    /// Returns the node as an agent.
    fn agent_mut(&mut self) -> &mut dyn Agent {
        match self {
            Self::Host(host) => host,
            Self::Router(router) => router,
            Self::Attached(attached) => attached,
            Self::Custom(agent) => agent.as_mut(),
            Self::ProcessingAndArp(front) => front.as_mut(),
            Self::StandIn(far) => far,
        }
    }

    /// Returns the node as an agent, for calls that are not made per packet.
    pub(crate) fn agent(&self) -> &dyn Agent {
        match self {
            Self::Host(host) => host,
            Self::Router(router) => router,
            Self::Attached(attached) => attached,
            Self::Custom(agent) => agent.as_ref(),
            Self::ProcessingAndArp(front) => front.as_ref(),
            Self::StandIn(far) => far,
        }
    }
}

impl Agent for Node {
    fn routes(&mut self, routes: Routes) {
        self.agent_mut().routes(routes);
    }

    // Routers are not run per packet, so nearly all calls are to hosts.

    #[inline]
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        match self {
            Self::Host(host) => host.on_packet(from, packet, cx),
            other => other.agent_mut().on_packet(from, packet, cx),
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        match self {
            Self::Host(host) => host.on_deadline(cx),
            other => other.agent_mut().on_deadline(cx),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Host(host) => host.next_deadline(),
            other => other.agent().next_deadline(),
        }
    }

    fn retire(&mut self, cx: &mut Ctx<'_>) {
        self.agent_mut().retire(cx);
    }

    fn holdings(&self) -> Holdings {
        self.agent().holdings()
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.agent().counters(visit);
    }

    fn gauges(&self) -> &'static [Gauge] {
        self.agent().gauges()
    }

    fn gauge(&self, index: usize) -> f64 {
        self.agent().gauge(index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.agent().stream_check()
    }

    fn remark(&self) -> Option<&'static str> {
        self.agent().remark()
    }

    fn is_quiet(&self) -> bool {
        self.agent().is_quiet()
    }

    fn managed(&mut self) -> Option<&mut dyn Managed> {
        self.agent_mut().managed()
    }
}
