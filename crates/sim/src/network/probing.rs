//! Execution of probes.

use bentpipe_link::Direction;
use bentpipe_types::{Agent, Series, Span, Time};
use rustc_hash::FxHashSet;

use super::fast::FastPaths;
use super::segments::SegmentProbe;
use super::{FlowEnd, FlowSlot, Network};
use crate::probe::{
    ActiveProbe, FlowQuantity, KnownQuantity, LinkQuantity, Probe, ProbeTarget, Sampling,
};
use crate::schedule::ComponentId;

/// The probes of a network by sampling kind.
#[derive(Default)]
pub(super) struct Probes {
    /// Sampling interval.
    interval: Option<Span>,
    /// Time of the next sample.
    next: Time,
    /// Number of samples after which the interval doubles, if it does.
    most: Option<u32>,
    sampled: Vec<ActiveProbe>,
    /// Probes after each event of a node.
    at_nodes: Vec<(u16, ActiveProbe)>,
    /// Probes at each change of a queue: (direction, probe).
    at_queues: Vec<(u16, ActiveProbe)>,
    /// Maximum backlog of directions since the last sample.
    peaks: Vec<(u16, u64)>,
    /// For tests: every probe observes each event, without fast paths.
    pub(super) observe: bool,
    /// Whether it is settled which directions are observed at each event; true once the run has
    /// begun.
    pub(super) settled: bool,
    /// Probes of segments.
    pub(super) segments: Vec<SegmentProbe>,
    /// Functions of time, with their units.
    known: Vec<(&'static str, KnownQuantity)>,
}

impl Network {
    /// Adds a function of time that probes can record, and returns its index.
    pub fn add_known(&mut self, unit: &'static str, value: KnownQuantity) -> usize {
        self.probes.known.push((unit, value));
        self.probes.known.len() - 1
    }

    /// Adds probes, before the run.
    pub fn probe(&mut self, probes: Vec<Probe>, sampling: Sampling) {
        let (rates, most) = match sampling {
            Sampling::Interval(interval) => (interval, None),
            Sampling::AsItLasts { finest, most } => (finest, Some(most)),
            Sampling::EveryChange { rates } => (rates, None),
        };
        let each_change = matches!(sampling, Sampling::EveryChange { .. });
        for probe in probes {
            let unit = match probe.target {
                ProbeTarget::Node(node, gauge) => {
                    self.gauges(node).get(gauge).map_or("", |gauge| gauge.unit)
                }
                ProbeTarget::Known(index) => self.probes.known[index].0,
                target => unit(target),
            };
            let series = self.trace.open(probe.name, unit);
            let active = ActiveProbe {
                target: probe.target,
                series,
                last: None,
                until: Default::default(),
            };
            match probe.target {
                ProbeTarget::Flow(flow, quantity) if quantity.is_of_segments() => {
                    self.probe_segments(flow, quantity, series);
                }
                ProbeTarget::Flow(flow, quantity) if each_change && !quantity.is_average() => {
                    let flow = &self.flows[flow];
                    let node = if quantity == FlowQuantity::ResponseTime {
                        flow.measures
                    } else if quantity.is_receivers() {
                        flow.receiver.0
                    } else {
                        flow.sender.0
                    };
                    self.nodes[usize::from(node)].watched = true;
                    self.probes.at_nodes.push((node, active));
                }
                ProbeTarget::Direction(direction, quantity)
                    if each_change && !quantity.is_average() =>
                {
                    self.observe(direction as u16);
                    self.directions[direction].watch();
                    self.probes.at_queues.push((direction as u16, active));
                }
                ProbeTarget::Node(node, _) if each_change => {
                    self.nodes[node].watched = true;
                    self.probes.at_nodes.push((node as u16, active));
                }
                _ => self.probes.sampled.push(active),
            }
        }
        if !self.probes.sampled.is_empty() && self.probes.interval.is_none() {
            // An interval of zero would stop the clock.
            self.probes.interval = Some(rates.max(Span::from_nanos(1)));
            (self.probes.most, self.probes.next) = (most, self.now);
            self.schedule.push(self.now, self.sampler());
        }
    }

    /// Whether there are probes.
    pub(super) fn has_probes(&self) -> bool {
        let probes = &self.probes;
        !(probes.sampled.is_empty()
            && probes.at_nodes.is_empty()
            && probes.at_queues.is_empty()
            && probes.segments.is_empty())
    }

    /// Returns the directions and quantities that are sampled at the interval.
    pub(super) fn sampled(&self) -> impl Iterator<Item = (u16, LinkQuantity)> {
        let directions = self.probes.sampled.iter().map(|probe| probe.target);
        directions.filter_map(|target| match target {
            ProbeTarget::Direction(index, quantity) => Some((index as u16, quantity)),
            ProbeTarget::Flow(..)
            | ProbeTarget::Goodput(..)
            | ProbeTarget::Node(..)
            | ProbeTarget::Known(_) => None,
        })
    }

    /// Returns the directions that are sampled at the interval.
    pub(super) fn sampled_directions(&self) -> FxHashSet<u16> {
        self.sampled().map(|(index, _)| index).collect()
    }

    /// At the start of the run: lets sampled directions be observed at each event if their maximum
    /// backlog cannot be determined otherwise. It follows from a drop-tail queue's history
    /// ([`FastPaths::sample`]), and other unmanaged queues store it.
    #[cold]
    pub(super) fn settle_probes(&mut self) {
        for (index, quantity) in self.sampled().collect::<Vec<_>>() {
            let is_most = quantity == LinkQuantity::QueueMax;
            let slot = &mut self.directions[usize::from(index)];
            let is_managed = matches!(slot.direction, Direction::Managed(_));
            if self.probes.observe || is_most && (is_managed || slot.observed) {
                self.observe(index);
                if is_most {
                    self.directions[usize::from(index)].watch();
                    self.probes.peaks.push((index, 0));
                }
            }
        }
    }

    /// Returns the number of records that were not taken yet.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.trace.records()
    }

    /// Returns the records since the last call, for callers that cannot keep all of them until the
    /// end.
    #[must_use]
    pub fn take_records(&mut self) -> Vec<Series> {
        self.trace.drain()
    }

    /// Returns the sampler's component number, after all directions and nodes.
    pub(super) fn sampler(&self) -> ComponentId {
        ComponentId((self.directions.len() + self.nodes.len()) as u16)
    }

    /// Takes all samples and enters the next sample into the schedule.
    pub(super) fn sample(&mut self) {
        let Some(interval) = self.probes.interval else {
            return;
        };
        self.look_at_all(interval);
        // Samples are at multiples of the interval.
        let is_enough = |most: u32| self.now >= Time::ZERO + interval * u64::from(most);
        let interval = if self.probes.most.is_some_and(is_enough) {
            self.coarsen(interval)
        } else {
            interval
        };
        self.probes.next = self.now + interval;
        self.schedule.postpone_first(self.probes.next);
    }

    /// Doubles the interval and reduces the recorded series as if it had always been that long.
    /// Returns the new interval.
    #[cold]
    fn coarsen(&mut self, interval: Span) -> Span {
        let doubled = interval * 2;
        for probe in &self.probes.sampled {
            self.trace
                .coarsen(probe.series, doubled, put_together(probe.target));
        }
        self.probes.interval = Some(doubled);
        doubled
    }

    /// Returns the time of the next sample.
    pub(super) fn next_sample(&self) -> Option<Time> {
        self.probes.interval.map(|_| self.probes.next)
    }

    /// Takes the last sample at the end of the run.
    pub(super) fn finish_probes(&mut self, ended: Time) {
        for index in 0..self.directions.len() {
            if self.directions[index].rare.watched {
                self.probe_queue(index as u16);
            }
        }
        let Some(interval) = self.probes.interval else {
            return;
        };
        let nanos = ended.as_nanos() % interval.as_nanos();
        if nanos > 0 {
            self.now = ended;
            self.look_at_all(Span::from_nanos(nanos));
        }
    }

    fn look_at_all(&mut self, elapsed: Span) {
        let mut sampled = std::mem::take(&mut self.probes.sampled);
        for probe in &mut sampled {
            let value = match probe.target {
                ProbeTarget::Flow(flow, FlowQuantity::Goodput) => {
                    let bits = 8.0
                        * self
                            .flow_value(flow, FlowQuantity::Delivered)
                            .unwrap_or(0.0);
                    Some(rate(probe, bits, elapsed))
                }
                ProbeTarget::Flow(flow, FlowQuantity::MeasuredRtt) => {
                    self.measured_rtt(flow, probe)
                }
                ProbeTarget::Flow(flow, quantity) => self.flow_value(flow, quantity),
                ProbeTarget::Goodput(first, count) => {
                    let flows = &self.flows[first..first + count];
                    let bytes = flows.iter().filter_map(|flow| self.flow_delivered(flow));
                    let bits = 8.0 * bytes.sum::<f64>();
                    Some(rate(probe, bits, elapsed))
                }
                ProbeTarget::Direction(index, quantity) => {
                    self.look_at_direction(index, quantity, probe, elapsed)
                }
                ProbeTarget::Node(node, gauge) => self.node_value(node, gauge),
                ProbeTarget::Known(index) => (self.probes.known[index].1)(self.now),
            };
            if let Some(value) = value {
                self.trace.record(probe.series, self.now, value);
            }
        }
        self.probes.sampled = sampled;
    }

    /// Returns the value of a direction's quantity; the previous sample was `elapsed` ago.
    fn look_at_direction(
        &mut self,
        index: usize,
        quantity: LinkQuantity,
        probe: &mut ActiveProbe,
        elapsed: Span,
    ) -> Option<f64> {
        let now = self.now;
        let slot = &mut self.directions[index];
        slot.direction.settle(now, &mut self.packets);
        let sample = FastPaths::sample(self, index, quantity);
        let slot = &mut self.directions[index];
        let value = match (quantity, sample) {
            (LinkQuantity::Utilization, busy) => {
                let busy = busy.unwrap_or_else(|| slot.direction.busy(now).as_secs_f64());
                rate(probe, busy, elapsed)
            }
            (_, Some(value)) => value,
            (LinkQuantity::QueueMax, None) => self.take_peak(index),
            (LinkQuantity::Granted, None) => {
                rate(probe, slot.direction.granted_bits(now)?, elapsed)
            }
            _ => {
                slot.direction.advance(now, |_, _, _| {});
                self.direction_value(index, quantity)
            }
        };
        Some(value)
    }

    /// Records the probes of a node after one of its events.
    #[cold]
    pub(super) fn probe_node(&mut self, node: u16) {
        let mut probes = std::mem::take(&mut self.probes.at_nodes);
        for (_, probe) in probes.iter_mut().filter(|(at, _)| *at == node) {
            let value = match probe.target {
                ProbeTarget::Flow(flow, quantity) => self.flow_value(flow, quantity),
                ProbeTarget::Node(node, gauge) => self.node_value(node, gauge),
                ProbeTarget::Direction(..) | ProbeTarget::Goodput(..) | ProbeTarget::Known(_) => {
                    None
                }
            };
            if let Some(value) = value
                && probe.last != Some(value)
            {
                probe.last = Some(value);
                self.trace.record(probe.series, self.now, value);
            }
        }
        self.probes.at_nodes = probes;
        self.probe_sent(node);
    }

    /// Records the probes of a queue if their values have changed.
    #[cold]
    pub(super) fn probe_queue(&mut self, index: u16) {
        if self.probes.at_queues.iter().any(|(at, _)| *at == index) {
            self.record_queue(index);
        }
        if let Some((_, peak)) = self.probes.peaks.iter_mut().find(|(at, _)| *at == index) {
            let direction = &mut self.directions[usize::from(index)].direction;
            direction.advance(self.now, |_, _, _| {});
            *peak = (*peak).max(direction.waiting_packets());
        }
    }

    /// Returns the maximum backlog since the last sample. The current backlog begins the next
    /// interval.
    fn take_peak(&mut self, index: usize) -> f64 {
        let direction = &mut self.directions[index].direction;
        if let Direction::Queued(queued) = direction {
            return queued.take_most() as f64;
        }
        direction.advance(self.now, |_, _, _| {});
        let waiting = direction.waiting_packets();
        let peaks = &mut self.probes.peaks;
        match peaks.iter_mut().find(|(at, _)| usize::from(*at) == index) {
            Some((_, peak)) => std::mem::replace(peak, waiting).max(waiting) as f64,
            None => waiting as f64,
        }
    }

    fn record_queue(&mut self, index: u16) {
        let mut probes = std::mem::take(&mut self.probes.at_queues);
        let mut departures = Vec::new();
        let slot = &mut self.directions[usize::from(index)];
        slot.direction.advance(self.now, |at, packets, bytes| {
            departures.push((at, packets, bytes))
        });
        for (_, probe) in probes.iter_mut().filter(|(at, _)| *at == index) {
            let ProbeTarget::Direction(direction, quantity) = probe.target else {
                continue;
            };
            let mut record = |at, value| {
                if probe.last != Some(value) {
                    probe.last = Some(value);
                    self.trace.record(probe.series, at, value);
                }
            };
            for &(at, packets, bytes) in &departures {
                match quantity {
                    LinkQuantity::Queue => record(at, packets as f64),
                    LinkQuantity::QueueBytes => record(at, bytes as f64),
                    _ => {}
                }
            }
            record(
                self.now,
                quantity
                    .read(&self.directions[direction].direction)
                    .unwrap_or(f64::NAN),
            );
        }
        self.probes.at_queues = probes;
    }

    fn node_value(&self, node: usize, gauge: usize) -> Option<f64> {
        let value = self.nodes.get(node)?.node.gauge(gauge);
        // An agent's undefined value is not recorded.
        value.is_finite().then_some(value)
    }

    fn direction_value(&self, index: usize, quantity: LinkQuantity) -> f64 {
        let value = quantity.read(&self.directions[index].direction);
        // A quantity of an interval has no value at an instant.
        value.unwrap_or(f64::NAN)
    }

    fn flow_value(&self, flow: usize, quantity: FlowQuantity) -> Option<f64> {
        let flow = &self.flows[flow];
        let end = if quantity.is_receivers() {
            flow.receiver
        } else {
            flow.sender
        };
        match quantity {
            // Includes datagrams, which have no connection.
            FlowQuantity::Delivered => return self.flow_delivered(flow),
            FlowQuantity::Received => return self.flow_received(flow),
            FlowQuantity::ResponseTime => {
                let of = |(node, end)| self.host(node)?.latest(end);
                let latest = of(flow.opener).or_else(|| of(flow.server));
                return latest.map(Span::as_secs_f64);
            }
            _ => {}
        }
        match self.connection(end) {
            Some(connection) => quantity.read(connection),
            None => quantity.of_transport(&self.host(end.0)?.transport(end.1)?),
        }
    }

    /// Returns the mean of the round-trip times since the last sample, or `None` without any.
    fn measured_rtt(&self, flow: usize, probe: &mut ActiveProbe) -> Option<f64> {
        let rtt = &self.connection(self.flows[flow].sender)?.statistics().rtt;
        let now = (rtt.count(), rtt.sum());
        // For a new connection, from its start.
        let before = Some(probe.until).filter(|before| before.0 <= now.0);
        let (count, sum) = before.unwrap_or_default();
        probe.until = now;
        let samples = now.0 - count;
        (samples > 0).then(|| now.1.saturating_sub(sum).as_secs_f64() / samples as f64)
    }

    /// Returns the delivered bytes, or `None` before the flow can deliver any.
    fn flow_delivered(&self, flow: &FlowSlot) -> Option<f64> {
        let delivered = |(node, end): FlowEnd| Some(self.host(node)?.delivered(end));
        let mut bytes = delivered(flow.receiver)?;
        if flow.both {
            bytes += delivered(flow.sender)?;
        }
        let has_begun = bytes > 0 || self.connection(flow.receiver).is_some();
        has_begun.then_some(bytes as f64)
    }

    /// Returns the bytes that have arrived, in order or not, each counted once.
    fn flow_received(&self, flow: &FlowSlot) -> Option<f64> {
        let out_of_order = |end| self.connection(end).map_or(0, |tcp| tcp.out_of_order());
        let mut ahead = out_of_order(flow.receiver);
        if flow.both {
            ahead += out_of_order(flow.sender);
        }
        Some(self.flow_delivered(flow)? + ahead as f64)
    }
}

/// Returns the function that merges two samples into one, of which the first may be undefined: the
/// second value, except for quantities counted between samples.
fn put_together(target: ProbeTarget) -> fn(Option<f64>, f64) -> f64 {
    match target {
        ProbeTarget::Flow(_, FlowQuantity::Goodput)
        | ProbeTarget::Goodput(..)
        | ProbeTarget::Direction(_, LinkQuantity::Utilization | LinkQuantity::Granted) => {
            |before, after| f64::midpoint(before.unwrap_or(0.0), after)
        }
        // The numbers of samples in each mean are no longer known.
        ProbeTarget::Flow(_, FlowQuantity::MeasuredRtt) => {
            |before, after| before.map_or(after, |before| f64::midpoint(before, after))
        }
        ProbeTarget::Direction(_, LinkQuantity::QueueMax) => {
            |before, after| before.map_or(after, |before| before.max(after))
        }
        ProbeTarget::Flow(..)
        | ProbeTarget::Direction(..)
        | ProbeTarget::Node(..)
        | ProbeTarget::Known(_) => |_, after| after,
    }
}

/// Returns by how much a total has grown per second since the last sample.
fn rate(probe: &mut ActiveProbe, total: f64, elapsed: Span) -> f64 {
    let grown = total - probe.last.unwrap_or(0.0);
    probe.last = Some(total);
    grown / elapsed.as_secs_f64()
}

fn unit(target: ProbeTarget) -> &'static str {
    match target {
        ProbeTarget::Goodput(..) => "bit/s",
        ProbeTarget::Flow(_, quantity) => quantity.unit(),
        ProbeTarget::Direction(_, quantity) => quantity.unit(),
        // They have units of their own.
        ProbeTarget::Node(..) | ProbeTarget::Known(_) => "",
    }
}
