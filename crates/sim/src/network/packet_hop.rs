//! A packet-hop: a packet arrives from a direction at a node, and the node's packets are offered to
//! the next direction.

use bentpipe_link::{Arrival, Direction, Fifo, Head, Verdict};
use bentpipe_types::{Agent, Bytes, Ctx, PacketRef, PacketStore, Port, Room, Time};

use super::fast::FastPaths;
use super::{MANY, Network, RECEIVING, SENDING};
use crate::node::Node;
use crate::router::Refusal;
use crate::schedule::ComponentId;

/// Returns the head of a direction, and prefetches its record.
#[inline(always)]
fn comes_next(direction: &Fifo, packets: &PacketStore) -> Option<Head> {
    let head = direction.first()?;
    packets.prefetch(head.packet);
    Some(head)
}

impl Network {
    /// Handles the arrival of a direction's head.
    #[inline(always)]
    pub(super) fn on_arrival(&mut self, index: u16) {
        if self.directions[usize::from(index)].observed {
            self.on_observed_arrival(index);
        } else {
            self.arrive::<false>(index);
        }
    }

    #[inline(never)]
    fn on_observed_arrival(&mut self, index: u16) {
        if self.directions[usize::from(index)].rare.watched {
            self.probe_queue(index);
        }
        self.arrive::<true>(index);
    }

    /// Handles the arrival of a direction's head. `OBSERVED` is whether a probe or capture observes
    /// it.
    #[inline(always)]
    fn arrive<const OBSERVED: bool>(&mut self, index: u16) {
        if FastPaths::on_arrival(self, index) {
            return;
        }
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            return self.on_other_arrival(index);
        };
        let (to, port) = (slot.to, slot.to_port);
        let arrival = fifo.arrive(self.now);
        let next = comes_next(fifo, &self.packets);
        self.schedule.first_goes_on(next.map(|head| head.arrival));
        if let Some(Arrival::Delivered(packet)) = arrival {
            if OBSERVED && let Some(tap) = slot.rare.taps[RECEIVING] {
                self.taps[usize::from(tap)].received(self.now, packet, &self.packets);
            }
            self.deliver(to, port, packet);
        } else {
            self.lose(index, arrival);
        }
    }

    /// Counts an arrival that is lost to errors.
    #[inline(never)]
    pub(super) fn lose(&mut self, index: u16, arrival: Option<Arrival>) {
        let Some(Arrival::Lost(packet)) = arrival else {
            debug_assert!(false, "a direction's entry is the arrival of its head");
            return;
        };
        self.packets.release(packet);
        self.last_activity = self.now;
        if self.directions[usize::from(index)].rare.watched {
            self.probe_queue(index);
        }
    }

    /// Handles the arrivals, if any, of a direction that is not a plain drop-tail queue.
    #[inline(never)]
    fn on_other_arrival(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let (to, port) = (slot.to, slot.to_port);
        let Direction::Queued(queued) = &mut slot.direction else {
            return self.on_managed_arrival(index, to, port);
        };
        if slot.rare.scheduled != Some(self.now) {
            return self.schedule.remove_first();
        }
        let arrival = queued.arrive(self.now, &mut self.packets);
        if let Some(next) = queued.first() {
            self.packets.prefetch(next);
        }
        slot.rare.scheduled = queued.next_arrival();
        self.schedule.first_goes_on(slot.rare.scheduled);
        match arrival {
            Some(Arrival::Delivered(packet)) => self.deliver(to, port, packet),
            // The event was a packet offered to the queue.
            None => {}
            lost => self.lose(index, lost),
        }
    }

    /// Handles the schedule entry of a managed direction, from which packets may arrive.
    #[inline(never)]
    fn on_managed_arrival(&mut self, index: u16, to: u16, port: Port) {
        let mut arrived = self.on_managed(index);
        while let Some(packet) = arrived {
            if to == MANY {
                self.spread(index, packet);
            } else {
                self.deliver(to, port, packet);
            }
            arrived = self.arrived.pop();
        }
    }

    /// Delivers a packet to a node.
    #[inline(always)]
    pub(super) fn deliver(&mut self, to: u16, port: Port, packet: PacketRef) {
        self.packet_hops += 1;
        self.last_activity = self.now;
        let slot = &self.nodes[usize::from(to)];
        // Most packets of most networks are at a router, which only selects a port.
        if let Node::Router(router) = &slot.node
            && !slot.watched
        {
            match router.way(packet, &mut self.packets) {
                Ok(out) => {
                    let direction = slot.ways.behind(out);
                    self.transmit(to, direction, packet);
                }
                Err(refusal) => self.refuse(to, packet, refusal),
            }
            return;
        }
        if slot.watched {
            self.probe_received(to, packet);
        }
        self.call(to, |node, cx| node.on_packet(port, packet, cx));
    }

    /// Handles a packet that a router does not forward.
    #[cold]
    pub(super) fn refuse(&mut self, router: u16, packet: PacketRef, refusal: Refusal) {
        self.call(router, |node, cx| {
            if let Node::Router(router) = node {
                router.refuse(packet, refusal, cx);
            }
        });
    }

    /// Handles a node's schedule entry: its deadline, or an earlier one that has moved.
    pub(super) fn on_deadline(&mut self, index: u16) {
        self.schedule.remove_first();
        let slot = &mut self.nodes[usize::from(index)];
        if slot.scheduled != Some(self.now) {
            return;
        }
        slot.scheduled = None;
        match slot.deadline() {
            Some(at) if at <= self.now => self.process_deadline(index),
            _ => self.reschedule(index),
        }
    }

    /// Processes a node's deadline.
    pub(super) fn process_deadline(&mut self, index: u16) {
        self.nodes[usize::from(index)].clock = self.now;
        let mut active = false;
        self.call(index, |node, cx| {
            node.on_deadline(cx);
            active = !cx.outbox.is_empty();
        });
        if active {
            self.last_activity = self.now;
        }
    }

    /// Runs a node, records its next deadline, and sends what it emits.
    #[inline(always)]
    pub(super) fn call(&mut self, index: u16, run: impl FnOnce(&mut Node, &mut Ctx<'_>)) {
        let slot = &mut self.nodes[usize::from(index)];
        let mut cx = Ctx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut slot.random,
            outbox: &mut self.outbox,
            discards: &mut self.discards,
            room: Room::UNKNOWN,
        };
        run(&mut slot.node, &mut cx);
        let watched = slot.watched;
        if let Some(at) = slot.due(self.now) {
            let component = ComponentId(self.directions.len() as u16 + index);
            self.schedule.push(at, component);
        }
        if watched {
            self.probe_node(index);
        }
        let mut position = 0;
        while let Some((port, packet)) = self.outbox.get(position).copied() {
            let direction = self.nodes[usize::from(index)].ways.behind(port);
            self.transmit(index, direction, packet);
            position += 1;
        }
        self.outbox.clear();
    }

    /// Enters the node's next deadline, unless an entry at least as early exists.
    pub(super) fn reschedule(&mut self, index: u16) {
        if let Some(at) = self.nodes[usize::from(index)].due(self.now) {
            let component = ComponentId(self.directions.len() as u16 + index);
            self.schedule.push(at, component);
        }
    }

    /// Offers a packet to the direction behind a port.
    #[inline(never)]
    pub(super) fn transmit(&mut self, from: u16, index: u16, packet: PacketRef) {
        let Some(slot) = self.directions.get(usize::from(index)) else {
            return self.leave(from, index, packet);
        };
        if slot.observed {
            self.transmit_observed(index, packet);
        } else if let Direction::Fifo(_) = slot.direction {
            self.queue(index, packet);
        } else {
            self.transmit_other(index, packet);
        }
    }

    /// Offers a packet to a direction that is not a plain drop-tail queue.
    #[inline(never)]
    fn transmit_other(&mut self, index: u16, packet: PacketRef) {
        match self.directions[usize::from(index)].direction {
            Direction::Queued(_) => self.transmit_queued(index, packet),
            _ => self.transmit_managed(index, packet),
        }
    }

    /// Offers a packet to a direction that a probe or capture observes.
    #[inline(never)]
    fn transmit_observed(&mut self, index: u16, packet: PacketRef) {
        let rare = &self.directions[usize::from(index)].rare;
        let (watched, tap) = (rare.watched, rare.taps[SENDING]);
        if watched {
            // The probe reads the queue before this packet brings it up to date.
            self.probe_queue(index);
        }
        let Direction::Fifo(_) = self.directions[usize::from(index)].direction else {
            return self.transmit_other(index, packet);
        };
        let start = self.queue(index, packet);
        if let (Some(start), Some(tap)) = (start, tap) {
            self.taps[usize::from(tap)].sent(start, packet, &self.packets);
        }
        if watched {
            self.probe_queue(index);
        }
    }

    /// Offers a packet to a drop-tail queue. Returns when its transmission begins, or `None` if the
    /// queue is full.
    #[inline(always)]
    fn queue(&mut self, index: u16, packet: PacketRef) -> Option<Time> {
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            debug_assert!(false, "a managed direction has a queue of its own");
            return None;
        };
        let length = self.packets.get(packet).length();
        if fifo.enqueue(self.now, packet, length) == Verdict::Dropped {
            self.packets.release(packet);
            return None;
        }
        let (start, arrival) = (fifo.last_start(), fifo.last_arrival());
        let is_head = fifo.in_transit() == 1;
        self.enter_arrival(index, arrival, packet, length, is_head);
        Some(start)
    }

    /// Enters the arrival of a packet that a drop-tail direction has taken. `is_head`: no other
    /// packet is in transit there.
    #[inline(always)]
    fn enter_arrival(
        &mut self,
        index: u16,
        at: Time,
        packet: PacketRef,
        length: Bytes,
        is_head: bool,
    ) {
        if !FastPaths::on_enqueue(self, index, at, packet, length) && is_head {
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Handles a packet that another part has transmitted and that arrives from a direction `at`
    /// this time.
    pub(super) fn add_arrival(&mut self, index: u16, at: Time, packet: PacketRef) {
        let length = self.packets.get(packet).length();
        let Direction::Fifo(fifo) = &mut self.directions[usize::from(index)].direction else {
            debug_assert!(false, "the receiving half of a direction");
            return self.packets.release(packet);
        };
        fifo.add_arrival(at, packet, length);
        let is_head = fifo.in_transit() == 1;
        self.enter_arrival(index, at, packet, length, is_head);
    }
}
