//! What became of every flow and every link direction.

use bentpipe_host::Report;
use bentpipe_link::{AccessCounts, ClassCounts, Counters};
use bentpipe_tcp::{Failure, FailureKind, Statistics};
use bentpipe_types::{Discards, Holdings, Series, StreamCheck, Time};

/// How a flow stands at the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowState {
    /// The run ended first.
    Running,
    /// Every byte was delivered.
    Finished,
    /// An end heard nothing for so long that it gave the connection up.
    GaveUp,
    /// The connection was refused: a RST answered the SYN.
    Refused,
    /// The connection was reset.
    Reset,
}

impl FlowState {
    /// Every state, with its name in results.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Running, "running"),
        (Self::Finished, "finished"),
        (Self::GaveUp, "gave up"),
        (Self::Refused, "refused"),
        (Self::Reset, "reset"),
    ];

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What became of a flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// It is what one member of a group gets.
    pub multicast: bool,
    /// Its name.
    pub name: String,
    /// When it was to start.
    pub start: Time,
    /// Bytes to deliver; `None` if it has no end.
    pub size: Option<u64>,
    /// When its last byte was delivered, in order, to the receiving application.
    pub finish: Option<Time>,
    /// How it stands.
    pub state: FlowState,
    /// When it was over, one way or another; `None` while it runs.
    pub ended: Option<Time>,
    /// The sending side's counters, if it has begun.
    pub sender: Option<Statistics>,
    /// The receiving side's counters, if it was reached. Where both sides send and receive, these and
    /// the sender's are those of both together.
    pub receiver: Option<Statistics>,
    /// What its applications tell.
    pub report: Report,
}

/// What the two ends of a flow have to tell, whoever's connections they had.
#[derive(Clone, Debug, Default)]
pub struct FlowTold {
    /// It is what one member of a group gets.
    pub multicast: bool,
    /// The flow's name.
    pub name: String,
    /// When it was to start.
    pub start: Time,
    /// Bytes to deliver; `None` if it has no end.
    pub size: Option<u64>,
    /// Either end sends as much as the other.
    pub both: bool,
    /// What the connections of the end that sends most have counted, and the other's.
    pub sender: Option<Statistics>,
    /// See `sender`.
    pub receiver: Option<Statistics>,
    /// Bytes that these two were delivered in datagrams.
    pub datagram_bytes: [u64; 2],
    /// What the opener's application tells, and the server's.
    pub reports: [Report; 2],
}

impl FlowOutcome {
    /// What became of a flow whose ends tell this.
    #[must_use]
    pub fn of(told: FlowTold) -> Self {
        let FlowTold {
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
            // There is no connection that counts them.
            receiver.get_or_insert_default().bytes_delivered += bytes;
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

    /// Bytes delivered in order to the receiving application.
    #[must_use]
    pub fn bytes_delivered(&self) -> u64 {
        self.receiver
            .as_ref()
            .map_or(0, |receiver| receiver.bytes_delivered)
    }
}

/// What came first is why: one end gives up, and what it is then sent it answers with a RST.
fn first_failure(ends: [&Option<Statistics>; 2]) -> Option<Failure> {
    ends.into_iter()
        .filter_map(|end| end.as_ref()?.failure)
        .min_by_key(|failure| failure.at)
}

/// What became of one direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionOutcome {
    /// `LINK.forward` or `LINK.return`.
    pub name: String,
    /// Its counters.
    pub counters: Counters,
    /// The share of the run during which it transmitted.
    pub utilization: f64,
    /// Packets still waiting, being transmitted or propagating.
    pub in_transit: u64,
    /// Many hear it.
    pub broadcast: bool,
    /// What its parts have counted by name, all flows together; nothing behind a drop-tail queue.
    pub counts: Counts,
    /// The same by flow: the name of the flow whose packets, of either end, they are.
    pub flow_counts: Vec<(String, Counts)>,
    /// What has become of each class of traffic, where its queue knows classes.
    pub classes: Vec<ClassCounts>,
    /// What it has asked a hub for, got and used, where it has to ask.
    pub access: Option<AccessCounts>,
}

/// Counters by name, in the order in which the parts tell them.
pub type Counts = Vec<(&'static str, u64)>;

/// What became of an agent that is neither host nor router.
#[derive(Clone, Debug)]
pub struct AgentOutcome {
    /// Its node's name.
    pub name: String,
    /// What it has counted, in its own order.
    pub counters: Vec<(String, u64)>,
    /// What it still keeps.
    pub holdings: Holdings,
    /// What the streams that end there have come to.
    pub stream_check: StreamCheck,
}

/// What a run has come to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the run ended: at its given end, or with the last that happened, if nothing was left that
    /// could. Connections that only wait in TIME-WAIT are over.
    pub ended: Time,
    /// Packets that arrived at a node, hop by hop.
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

/// A packet was not accounted for: a fault of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A direction was offered more (or fewer) packets than it delivered, lost, dropped or holds.
    Direction {
        /// The direction.
        name: String,
        /// Its counters.
        counters: Counters,
        /// Packets it holds.
        in_transit: u64,
        /// Packets its far end holds back.
        held_back: u64,
    },
    /// The store holds other packets than those in transit and those that nodes say they keep.
    Store {
        /// References to packets that the store knows of.
        held: u64,
        /// Packets in transit.
        in_transit: u64,
        /// References that nodes keep.
        at_nodes: u64,
    },
    /// A stream that ends at an agent was given bytes at another place than they were sent for.
    Agent {
        /// Its node's name.
        name: String,
        /// What it found.
        check: StreamCheck,
    },
    /// A receiver was given bytes at another place in the stream than they were sent for.
    Stream {
        /// The flow.
        flow: String,
    },
}
