//! Stand-in for a node of another part.

use bentpipe_types::{Agent, Ctx, MovedPacket, PacketRef, Port, Span, Time};

/// A packet that arrives in another part.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// Arrival time.
    pub(crate) at: Time,
    /// The direction from which it arrives.
    pub(crate) direction: u16,
    pub(crate) packet: MovedPacket,
}

/// Stands for a node of another part. The directions that lead to it from this part have no
/// propagation delay; their packets are recorded with their arrival times in the other part.
#[derive(Debug, Default)]
pub(crate) struct StandIn {
    /// Directions from this part by port, with their propagation delays.
    directions: Vec<Option<(u16, Span)>>,
    crossings: Vec<Crossing>,
}

impl StandIn {
    /// Adds a direction from this part.
    pub(crate) fn add(&mut self, port: Port, direction: u16, delay: Span) {
        let index = usize::from(port.0);
        if self.directions.len() <= index {
            self.directions.resize(index + 1, None);
        }
        self.directions[index] = Some((direction, delay));
    }

    /// Whether a direction leads to it from this part.
    pub(crate) fn is_reached(&self) -> bool {
        !self.directions.is_empty()
    }

    /// Moves the recorded packets to `into`, in the order of transmission.
    pub(crate) fn take(&mut self, into: &mut Vec<Crossing>) {
        into.append(&mut self.crossings);
    }
}

impl Agent for StandIn {
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(Some((direction, delay))) = self.directions.get(usize::from(from.0)) else {
            debug_assert!(false, "each direction to it was added");
            return cx.packets.release(packet);
        };
        self.crossings.push(Crossing {
            at: cx.now + *delay,
            direction: *direction,
            packet: cx.packets.move_out(packet),
        });
    }

    fn on_deadline(&mut self, _cx: &mut Ctx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
