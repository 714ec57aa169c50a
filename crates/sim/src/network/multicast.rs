//! Multicast: broadcast directions, and nodes at which a packet's routes part.

use std::collections::BTreeMap;

use bentpipe_link::{Direction, ErrorModel};
use bentpipe_types::{Address, Bytes, PacketRef, Port, Routes};

use super::Network;

/// Marks a direction with several receivers, in place of its far node.
pub(crate) const MANY: u16 = u16::MAX;

/// A receiver of a broadcast direction.
#[derive(Debug)]
pub(crate) struct MulticastReceiver {
    /// Receiving node.
    pub(crate) node: u16,
    /// Port of the receiving node.
    pub(crate) port: Port,
    /// Error models at this receiver; they do not affect others.
    pub(crate) errors: Vec<ErrorModel>,
}

/// The receivers of a broadcast direction, and the multicast channels that each has joined.
#[derive(Debug)]
pub(crate) struct MulticastReceivers {
    receivers: Vec<MulticastReceiver>,
    /// Routes of the sending node, and its port to the first receiver; the ports of the others
    /// follow.
    routes: Routes,
    first: Port,
    /// Receivers by multicast channel.
    channels: BTreeMap<Address, Vec<u16>>,
}

impl MulticastReceivers {
    pub(crate) fn new(receivers: Vec<MulticastReceiver>, first: Port) -> Self {
        Self {
            receivers,
            routes: Routes::default(),
            first,
            channels: BTreeMap::new(),
        }
    }

    /// Returns the receiving nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u16> {
        self.receivers.iter().map(|receiver| receiver.node)
    }

    /// Sets the sending node's routes, by which receivers are selected.
    pub(crate) fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    /// Adds a receiver of a channel.
    pub(crate) fn join(&mut self, channel: Address, receiver: u16) {
        self.channels.entry(channel).or_default().push(receiver);
    }

    /// Appends the receivers that the packet reaches to `into`. Returns the number of addressees,
    /// losses included.
    fn select(&mut self, to: Address, length: Bytes, into: &mut Vec<(u16, Port)>) -> u64 {
        let one = self.routes.port_towards(to);
        let one = one.and_then(|port| port.0.checked_sub(self.first.0));
        let addressees = match (self.channels.get(&to), &one) {
            (Some(addressees), _) => addressees.as_slice(),
            (None, Some(one)) if to.channel().is_none() => std::slice::from_ref(one),
            (None, _) => &[],
        };
        let mut ends = 0;
        for addressee in addressees {
            let Some(receiver) = self.receivers.get_mut(usize::from(*addressee)) else {
                continue;
            };
            ends += 1;
            let mut lost = false;
            for model in &mut receiver.errors {
                lost |= model.loses(length);
            }
            if !lost {
                into.push((receiver.node, receiver.port));
            }
        }
        ends
    }
}

impl Network {
    /// Delivers a packet from a broadcast direction: each receiver gets a copy, unless it is lost
    /// there.
    pub(super) fn spread(&mut self, index: u16, packet: PacketRef) {
        let mut survivors = std::mem::take(&mut self.receivers);
        let record = self.packets.get(packet);
        let (to, length) = (record.destination.address, record.length());
        let slot = &mut self.directions[usize::from(index)];
        if let (Some(receivers), Direction::Managed(managed)) =
            (&mut slot.rare.receivers, &mut slot.direction)
        {
            let ends = receivers.select(to, length, &mut survivors);
            managed.spread(ends, survivors.len() as u64, length);
        }
        let watched = slot.rare.watched;
        self.last_activity = self.now;
        let last = survivors.pop();
        for (node, port) in survivors.drain(..) {
            let copy = self.packets.duplicate(packet);
            self.deliver(node, port, copy);
        }
        match last {
            Some((node, port)) => self.deliver(node, port, packet),
            None => self.packets.release(packet),
        }
        self.receivers = survivors;
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
