//! Decorator around a node: a processor with a processing time, and address resolution for its
//! neighbours.

use bentpipe_host::PROCESSED_HOST_GAUGES;
use bentpipe_types::{
    Agent, Ctx, DropReason, Gauge, Holdings, Managed, Outbox, PacketRef, Port, Processing,
    Processor, StreamCheck, Time, WithProcessor,
};

use crate::address_resolution::{ArpSettings, Neighbour};

/// A node with its decorator. Arriving and outgoing packets share one processor, as all packets of
/// a node in gaid1998 pass its IP module (section 6.1). Address resolution is below IP and does not
/// use the processor.
pub(crate) struct ProcessingAndArp<N> {
    node: N,
    processor: Option<Processor<Way>>,
    dropped: u64,
    /// Address resolution by port; `None`, and ports beyond the end, need none.
    neighbours: Vec<Option<Neighbour>>,
    /// Buffer for packets that the node emits, reused.
    emitted: Outbox,
}

/// Direction in which a packet passes the processor.
#[derive(Clone, Copy, Debug)]
enum Way {
    In(Port),
    Out(Port),
}

impl<N: Agent> ProcessingAndArp<N> {
    pub(crate) fn new(
        node: N,
        processing: Option<Processing>,
        arp_settings: Vec<Option<ArpSettings>>,
    ) -> Self {
        let neighbours = arp_settings.into_iter().zip(0..);
        Self {
            node,
            processor: processing.map(Processor::new),
            dropped: 0,
            neighbours: neighbours
                .map(|(each, port)| each.map(|of| Neighbour::new(of, Port(port))))
                .collect(),
            emitted: Outbox::new(),
        }
    }

    pub(crate) fn node(&self) -> &N {
        &self.node
    }

    pub(crate) fn node_mut(&mut self) -> &mut N {
        &mut self.node
    }

    /// Runs the node and processes what it emits.
    fn run(&mut self, cx: &mut Ctx<'_>, run: impl FnOnce(&mut N, &mut Ctx<'_>)) {
        let before = cx.outbox.len();
        run(&mut self.node, cx);
        let mut emitted = std::mem::take(&mut self.emitted);
        emitted.extend(cx.outbox.drain(before..));
        for (port, packet) in emitted.drain(..) {
            match &self.processor {
                Some(_) => self.offer(Way::Out(port), packet, cx),
                None => self.send(port, packet, cx),
            }
        }
        self.emitted = emitted;
    }

    fn offer(&mut self, way: Way, packet: PacketRef, cx: &mut Ctx<'_>) {
        let refused = (self.processor.as_mut()).and_then(|all| all.offer(way, packet, cx.now));
        if let Some(packet) = refused {
            self.dropped += 1;
            cx.discard(packet, DropReason::Busy);
        }
    }

    fn send(&mut self, port: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        match self.neighbours.get_mut(usize::from(port.0)) {
            Some(Some(neighbour)) => neighbour.send(packet, cx),
            _ => cx.emit(port, packet),
        }
    }
}

impl<N: Agent> Agent for ProcessingAndArp<N> {
    fn routes(&mut self, routes: bentpipe_types::Routes) {
        self.node.routes(routes);
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if let Some(step) = cx.packets.get(packet).resolves() {
            match self.neighbours.get_mut(usize::from(from.0)) {
                Some(Some(neighbour)) => neighbour.hear(step, packet, cx),
                _ => cx.discard(packet, DropReason::Malformed),
            }
        } else if self.processor.is_some() {
            self.offer(Way::In(from), packet, cx);
        } else {
            self.run(cx, |node, cx| node.on_packet(from, packet, cx));
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        for neighbour in self.neighbours.iter_mut().flatten() {
            neighbour.on_deadline(cx);
        }
        while let Some((way, packet)) = self.processor.as_mut().and_then(|all| all.take(cx.now)) {
            match way {
                Way::In(from) => self.run(cx, |node, cx| node.on_packet(from, packet, cx)),
                Way::Out(port) => self.send(port, packet, cx),
            }
        }
        if self.node.next_deadline().is_some_and(|at| at <= cx.now) {
            self.run(cx, Agent::on_deadline);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let neighbours = self.neighbours.iter().flatten();
        let processor = self.processor.as_ref().and_then(Processor::next);
        neighbours
            .filter_map(Neighbour::next_deadline)
            .chain(processor)
            .chain(self.node.next_deadline())
            .min()
    }

    fn retire(&mut self, cx: &mut Ctx<'_>) {
        self.run(cx, Agent::retire);
    }

    fn holdings(&self) -> Holdings {
        let own = self.node.holdings();
        let processed = self.processor.as_ref().map_or(0, Processor::packets);
        let waiting = self.neighbours.iter().flatten().map(Neighbour::waiting);
        Holdings {
            packets: own.packets + processed + waiting.sum::<u64>(),
            ..own
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.node.counters(visit);
        if self.processor.is_some() {
            visit("packets.dropped", self.dropped);
        }
    }

    /// The processor's gauge, and then those of the node, which are a host's or none.
    fn gauges(&self) -> &'static [Gauge] {
        match (&self.processor, self.node.gauges()) {
            (Some(_), []) => WithProcessor::GAUGES,
            (Some(_), _) => PROCESSED_HOST_GAUGES,
            (None, gauges) => gauges,
        }
    }

    fn gauge(&self, index: usize) -> f64 {
        match &self.processor {
            Some(processor) if index == 0 => processor.packets() as f64,
            Some(_) => self.node.gauge(index - 1),
            None => self.node.gauge(index),
        }
    }

    fn stream_check(&self) -> StreamCheck {
        self.node.stream_check()
    }

    fn remark(&self) -> Option<&'static str> {
        self.node().remark()
    }

    fn is_quiet(&self) -> bool {
        self.node.is_quiet()
            && self.processor.as_ref().is_none_or(|all| all.packets() == 0)
            && (self.neighbours.iter().flatten()).all(|each| each.waiting() == 0)
    }

    fn managed(&mut self) -> Option<&mut dyn Managed> {
        self.node.managed()
    }
}
