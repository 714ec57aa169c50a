//! The nodes of a network, dispatched by enum.

use bentpipe_types::{Agent, Ctx, PacketRef, Port, Time};

use crate::{Host, Router};

/// A node: something that links lead to.
pub(crate) enum Node {
    Host(Box<Host>),
    Router(Router),
    Custom(Box<dyn Agent + Send>),
}

impl Agent for Node {
    #[inline]
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        match self {
            Self::Host(host) => host.on_packet(from, packet, cx),
            Self::Router(router) => router.on_packet(from, packet, cx),
            Self::Custom(agent) => agent.on_packet(from, packet, cx),
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        match self {
            Self::Host(host) => host.on_deadline(cx),
            Self::Router(router) => router.on_deadline(cx),
            Self::Custom(agent) => agent.on_deadline(cx),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Time> {
        match self {
            Self::Host(host) => host.next_deadline(),
            Self::Router(_) => None,
            Self::Custom(agent) => agent.next_deadline(),
        }
    }
}
