//! Multicast: broadcast directions, and nodes at which a packet's routes part.

use std::collections::BTreeMap;

use bentpipe_link::{Direction, ErrorModel};
use bentpipe_types::{Address, Bytes, PacketRef, Port, Routes};

use super::Network;

/// Marks a direction with several receivers, in place of its far node.
pub(crate) const MANY: u16 = u16::MAX;

/// A receiver of a broadcast direction.
#[derive(Debug)]
pub(crate) struct Hearer {
    /// Receiving node.
    pub(crate) node: u16,
    /// Port of the receiving node.
    pub(crate) port: Port,
    /// Error models at this receiver; they do not affect others.
    pub(crate) errors: Vec<ErrorModel>,
}

/// The receivers of a broadcast direction, and the channels that each of them takes.
#[derive(Debug)]
pub(crate) struct Audience {
    hearers: Vec<Hearer>,
    /// Routes of the sending node, and its port to the first receiver; the ports of the others
    /// follow.
    routes: Routes,
    first: Port,
    /// Receivers by multicast channel.
    channels: BTreeMap<Address, Vec<u16>>,
}

impl Audience {
    pub(crate) fn new(hearers: Vec<Hearer>, first: Port) -> Self {
        Self {
            hearers,
            routes: Routes::default(),
            first,
            channels: BTreeMap::new(),
        }
    }

    /// Sets the sending node's routes, by which receivers are selected.
    pub(crate) fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    /// Adds a receiver of a channel.
    pub(crate) fn takes(&mut self, channel: Address, hearer: u16) {
        self.channels.entry(channel).or_default().push(hearer);
    }

    /// Appends the receivers of a packet to `into`. Returns for how many it was, losses included.
    fn hear(&mut self, to: Address, length: Bytes, into: &mut Vec<(u16, Port)>) -> u64 {
        let one = self.routes.port_towards(to);
        let one = one.and_then(|port| port.0.checked_sub(self.first.0));
        let takers = match (self.channels.get(&to), &one) {
            (Some(takers), _) => takers.as_slice(),
            (None, Some(one)) if to.channel().is_none() => std::slice::from_ref(one),
            (None, _) => &[],
        };
        let mut ends = 0;
        for taker in takers {
            let Some(hearer) = self.hearers.get_mut(usize::from(*taker)) else {
                continue;
            };
            ends += 1;
            let mut lost = false;
            for model in &mut hearer.errors {
                lost |= model.loses(length);
            }
            if !lost {
                into.push((hearer.node, hearer.port));
            }
        }
        ends
    }
}

impl Network {
    /// Delivers a packet from a broadcast direction: each receiver gets a copy, unless it is lost
    /// there.
    pub(super) fn spread(&mut self, index: u16, packet: PacketRef) {
        let mut hearers = std::mem::take(&mut self.hearers);
        let record = self.packets.get(packet);
        let (to, length) = (record.destination.address, record.length());
        let slot = &mut self.directions[usize::from(index)];
        if let (Some(audience), Direction::Managed(managed)) =
            (&mut slot.seldom.audience, &mut slot.direction)
        {
            let ends = audience.hear(to, length, &mut hearers);
            managed.spread(ends, hearers.len() as u64, length);
        }
        let watched = slot.seldom.watched;
        self.last_activity = self.now;
        let last = hearers.pop();
        for (node, port) in hearers.drain(..) {
            let copy = self.packets.duplicate(packet);
            self.deliver(node, port, copy);
        }
        match last {
            Some((node, port)) => self.deliver(node, port, packet),
            None => self.packets.release(packet),
        }
        self.hearers = hearers;
        if watched {
            self.probe_queue(index);
        }
    }

    /// Forwards a packet to each direction of a branch point. Returns false if the port has no
    /// branch point.
    pub(super) fn branch(&mut self, from: u16, behind: u16, packet: PacketRef) -> bool {
        let number = usize::from(behind).checked_sub(self.directions.len());
        let Some(number) = number.filter(|number| *number < self.branches.len()) else {
            return false;
        };
        let directions = self.branches[number].len();
        for place in 0..directions {
            let direction = self.branches[number][place];
            let is_last = place + 1 == directions;
            let copy = if is_last {
                packet
            } else {
                self.packets.duplicate(packet)
            };
            self.transmit(from, direction, copy);
        }
        true
    }
}
