//! Outcome of flows and link directions.

use bentpipe_host::Report;
use bentpipe_link::{AccessCounts, ClassCounts, Counters};
use bentpipe_tcp::{Failure, FailureKind, Statistics};
use bentpipe_types::{Discards, Holdings, Series, StreamCheck, Time};

/// State of a flow at the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowState {
    /// The run ended first.
    Running,
    /// Every byte was delivered.
    Finished,
    /// An end received nothing for so long that it gave up.
    GaveUp,
    /// The connection was refused: a RST answered the SYN.
    Refused,
    /// The connection was reset.
    Reset,
}

impl FlowState {
    /// All states with their names in results.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Running, "running"),
        (Self::Finished, "finished"),
        (Self::GaveUp, "gave up"),
        (Self::Refused, "refused"),
        (Self::Reset, "reset"),
    ];

    /// Returns the name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Outcome of a flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Whether it is one member's part of a multicast flow.
    pub multicast: bool,
    /// Its name.
    pub name: String,
    /// Scheduled start.
    pub start: Time,
    /// Bytes to deliver, or `None` if it is endless.
    pub size: Option<u64>,
    /// When its last byte was delivered in order to the receiving application.
    pub finish: Option<Time>,
    /// State.
    pub state: FlowState,
    /// When it ended in any way, or `None` while it runs.
    pub ended: Option<Time>,
    /// Counters of the sending side, if it has begun.
    pub sender: Option<Statistics>,
    /// Counters of the receiving side, if it was reached. Where both sides send and receive, these
    /// and the sender's are sums of both.
    pub receiver: Option<Statistics>,
    /// Application metrics.
    pub report: Report,
}

/// Data of the two ends of a flow, whatever their implementation.
#[derive(Clone, Debug, Default)]
pub struct FlowEndData {
    /// Whether it is one member's part of a multicast flow.
    pub multicast: bool,
    /// The flow's name.
    pub name: String,
    /// Scheduled start.
    pub start: Time,
    /// Bytes to deliver, or `None` if it is endless.
    pub size: Option<u64>,
    /// Whether both ends send equally.
    pub both: bool,
    /// Counters of all connections of the end that sends most, and of the other end.
    pub sender: Option<Statistics>,
    /// See `sender`.
    pub receiver: Option<Statistics>,
    /// Bytes that these two ends received in datagrams.
    pub datagram_bytes: [u64; 2],
    /// Application metrics of the opener and of the server.
    pub reports: [Report; 2],
}

impl FlowOutcome {
    /// Computes the outcome of a flow from the data of its ends.
    #[must_use]
    pub fn of(told: FlowEndData) -> Self {
        let FlowEndData {
            multicast,
            name,
            start,
            size,
            both,
            mut sender,
            mut receiver,
            datagram_bytes,
            reports: [opener, server],
        } = told;
        let report = Report::of_both(opener, server);
        if both && let (Some(one), Some(other)) = (&mut sender, &mut receiver) {
            one.add(other);
            other.clone_from(one);
        }
        let [to_sender, mut bytes] = datagram_bytes;
        if both {
            bytes += to_sender;
        }
        if bytes > 0 {
            // No connection counts them.
            receiver.get_or_insert_default().bytes_delivered += bytes;
        }
        for quic in [&report.quic, &report.quic_server].into_iter().flatten() {
            let receiver = receiver.get_or_insert_default();
            receiver.last_delivery_at = receiver.last_delivery_at.max(quic.last_delivery);
            receiver.failure = receiver.failure.or(quic.failed);
        }
        let finish = receiver
            .as_ref()
            .filter(|receiver| size.is_some_and(|size| receiver.bytes_delivered >= size))
            .and_then(|receiver| receiver.last_delivery_at.or(Some(start)))
            .or(report.finished);
        let (state, ended) = match (finish, first_failure([&sender, &receiver])) {
            (Some(finish), _) => (FlowState::Finished, Some(finish)),
            (None, Some(failure)) => {
                let state = match failure.why {
                    FailureKind::TimedOut | FailureKind::Unreachable => FlowState::GaveUp,
                    FailureKind::Refused => FlowState::Refused,
                    FailureKind::Reset => FlowState::Reset,
                };
                (state, Some(failure.at))
            }
            (None, None) => (FlowState::Running, None),
        };
        Self {
            multicast,
            name,
            start,
            size,
            finish,
            state,
            ended,
            sender,
            receiver,
            report,
        }
    }

    /// Returns the bytes delivered in order to the receiving application.
    #[must_use]
    pub fn bytes_delivered(&self) -> u64 {
        self.receiver
            .as_ref()
            .map_or(0, |receiver| receiver.bytes_delivered)
    }
}

/// Returns the earlier failure: after one end gives up, it answers later segments with RST.
fn first_failure(ends: [&Option<Statistics>; 2]) -> Option<Failure> {
    ends.into_iter()
        .filter_map(|end| end.as_ref()?.failure)
        .min_by_key(|failure| failure.at)
}

/// Outcome of a link direction.
#[derive(Clone, Debug)]
pub struct DirectionOutcome {
    /// `LINK.forward` or `LINK.return`.
    pub name: String,
    /// Its counters.
    pub counters: Counters,
    /// Share of the run during which it transmitted.
    pub utilization: f64,
    /// Packets queued, in transmission or propagating.
    pub in_transit: u64,
    /// Whether it is a broadcast direction.
    pub broadcast: bool,
    /// Counters of its parts by name, all flows together; empty for a drop-tail queue.
    pub counts: Counts,
    /// The same by flow, including packets of either end.
    pub flow_counts: Vec<(String, Counts)>,
    /// Outcome per traffic class, where its queue has classes.
    pub classes: Vec<ClassCounts>,
    /// Requested, granted and used capacity, where capacity is on demand.
    pub access: Option<AccessCounts>,
}

/// Counters by name, in the order in which the parts report them.
pub type Counts = Vec<(&'static str, u64)>;

/// Outcome of an agent that is neither host nor router.
#[derive(Clone, Debug)]
pub struct AgentOutcome {
    /// Name of its node.
    pub name: String,
    /// Counters in the agent's order.
    pub counters: Vec<(String, u64)>,
    /// Data that it still holds.
    pub holdings: Holdings,
    /// Stream comparison of the connections that end there.
    pub stream_check: StreamCheck,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// End of the run: its configured end, or the last event if nothing could happen after it.
    /// TIME-WAIT does not extend a run.
    pub ended: Time,
    /// Number of packet arrivals at nodes.
    pub packet_hops: u64,
    /// Packets that nodes discarded.
    pub discards: Discards,
    /// Flows, in the order they were added.
    pub flows: Vec<FlowOutcome>,
    /// Link directions, in the order they were added.
    pub directions: Vec<DirectionOutcome>,
    /// Agents that are neither hosts nor routers, in the order they were added.
    pub agents: Vec<AgentOutcome>,
    /// The probes' time series.
    pub series: Vec<Series>,
}

/// A packet or byte that is not accounted for: a fault of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A direction's offered packets differ from those delivered, lost, dropped or held.
    Direction {
        /// Name of the direction.
        name: String,
        /// Counters of the direction.
        counters: Counters,
        /// Packets in transit.
        in_transit: u64,
        /// Packets held by its far end.
        held_back: u64,
    },
    /// The store's packets differ from those in transit and held by nodes.
    Store {
        /// References in the store.
        held: u64,
        /// Packets in transit.
        in_transit: u64,
        /// References held by nodes.
        at_nodes: u64,
    },
    /// A stream that ends at an agent received bytes at a wrong offset.
    Agent {
        /// Name of its node.
        name: String,
        /// The comparison.
        check: StreamCheck,
    },
    /// A receiver was given bytes at a wrong stream offset.
    Stream {
        /// Name of the flow.
        flow: String,
    },
}
