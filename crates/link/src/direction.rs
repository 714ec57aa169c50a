//! One direction of a link.

use bentpipe_types::{BitRate, PacketStore, RandomStream, Span, Time};

use crate::access::{Access, AccessCounts, Path, Terminal};
use crate::changes::{Course, Usual};
use crate::queue::DropTailQueue;
use crate::transmitter::Transmitter;
use crate::{
    Changes, ClassCounts, Counters, DropTail, Ends, ErrorModel, Fifo, Managed, QueueDiscipline,
    Queued, Tally,
};

/// Settings of one direction of a link.
#[derive(Debug)]
pub struct Settings {
    /// Rate of the transmitter.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// Queue.
    pub queue: Queueing,
    /// Error models; a packet is lost if any of them loses it.
    pub errors: Vec<ErrorModel>,
    /// Transmitted bits per bit of the packet (16/15 for the VSAT of obata2000, section 4.2.2).
    pub redundancy: f64,
    /// Processing at its two ends.
    pub ends: Ends,
    /// Changes over time, and their random streams.
    pub changes: Option<(Changes, Streams)>,
    /// Access to a carrier, with capacity on demand. Its rate is then determined by that alone:
    /// `changes` has neither rates nor outages.
    pub access: Option<Access>,
}

impl Settings {
    /// Returns the settings of a direction without errors, processing, changes or shared access.
    #[must_use]
    pub fn new(rate: BitRate, delay: Span, queue: impl Into<Queueing>) -> Self {
        Self {
            rate,
            delay,
            queue: queue.into(),
            errors: Vec::new(),
            redundancy: 1.0,
            ends: Ends::default(),
            changes: None,
            access: None,
        }
    }
}

/// Random streams of a changing direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streams {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the direction.
    pub component: String,
}

/// Kind of queue.
#[derive(Debug)]
pub enum Queueing {
    /// First in, first out, up to a limit.
    DropTail(DropTail),
    /// A queue that decides when the transmitter is free.
    Discipline {
        /// The queue.
        queue: Box<dyn QueueDiscipline>,
        /// Random stream of the queue.
        random: RandomStream,
    },
}

impl From<DropTail> for Queueing {
    fn from(queue: DropTail) -> Self {
        Self::DropTail(queue)
    }
}

/// One direction of a link.
#[derive(Debug)]
pub enum Direction {
    /// With a drop-tail queue: a departure is known when a packet arrives.
    Fifo(Fifo),
    /// With any other queue, whose departures nobody observes.
    Queued(Box<Queued>),
    /// With processing at its ends, a changing path, capacity on demand, or an observer: each
    /// departure is an event.
    Managed(Box<Managed>),
}

impl Direction {
    /// Creates an idle direction.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        settings.errors.retain(ErrorModel::ever_loses);
        if !settings.ends.is_empty() || settings.changes.is_some() || settings.access.is_some() {
            return Self::managed(settings);
        }
        let transmitter = Transmitter::new(settings.rate, settings.redundancy);
        let (delay, errors) = (settings.delay, settings.errors);
        match settings.queue {
            Queueing::DropTail(queue) => Self::Fifo(Fifo::new(transmitter, delay, queue, errors)),
            Queueing::Discipline { queue, random } => {
                let queued = Queued::new(transmitter, delay, queue, random, errors);
                Self::Queued(Box::new(queued))
            }
        }
    }

    /// Creates an idle direction in which each departure is an event, whatever its queue.
    #[must_use]
    pub fn managed(settings: Settings) -> Self {
        let transmitter = Transmitter::new(settings.rate, settings.redundancy);
        let (queue, random): (Box<dyn QueueDiscipline>, _) = match settings.queue {
            // It draws no random numbers.
            Queueing::DropTail(queue) => (
                Box::new(DropTailQueue::new(queue.limit)),
                RandomStream::new(0, "", ""),
            ),
            Queueing::Discipline { queue, random } => (queue, random),
        };
        let usual = Usual {
            rate: settings.rate,
            redundancy: settings.redundancy,
            delay: settings.delay,
        };
        let course = settings.changes.map(|(changes, streams)| {
            let Streams { seed, component } = streams;
            let random = |purpose: &str| RandomStream::new(seed, &component, purpose);
            Box::new(Course::new(usual, changes, &random))
        });
        let terminal = settings.access.map(|access| {
            let path = (course.as_ref()).map_or_else(Path::default, |course| {
                Path::new(course.rates(), course.outages())
            });
            Terminal::new(access, settings.redundancy, path)
        });
        let managed = Managed::new(
            transmitter,
            settings.delay,
            queue,
            random,
            settings.errors,
            settings.ends,
            course,
        );
        Self::Managed(Box::new(match terminal {
            None => managed,
            Some(terminal) => managed.on_demand(terminal),
        }))
    }

    /// Returns the propagation delay if it is constant, and if the direction can therefore be
    /// [split](Self::split_propagation).
    #[must_use]
    pub fn constant_delay(&self) -> Option<Span> {
        match self {
            Self::Fifo(fifo) => Some(fifo.delay()),
            Self::Queued(queued) => Some(queued.delay),
            Self::Managed(_) => None,
        }
    }

    /// Splits an idle direction with a constant delay in two. This one keeps queue and transmitter,
    /// and a packet arrives when its transmission ends. The returned one has the errors; packets
    /// are [added](Fifo::add_arrival) to it with their arrival times, which are later by the
    /// returned delay.
    ///
    /// Both together draw the same random numbers and count the same as the whole direction
    /// ([`Counters::of_halves`]).
    pub fn split_propagation(&mut self) -> Option<(Self, Span)> {
        let (arrivals, delay) = match self {
            Self::Fifo(fifo) => fifo.split_propagation(),
            Self::Queued(queued) => queued.split_propagation(),
            Self::Managed(_) => return None,
        };
        Some((Self::Fifo(arrivals), delay))
    }

    /// Returns an idle direction, for a place where none is used.
    #[must_use]
    pub fn unused() -> Self {
        const RATE: BitRate = BitRate::new(1).expect("not zero");
        Self::Fifo(Fifo::of_arrivals(Transmitter::new(RATE, 1.0), Vec::new()))
    }

    /// Makes each event observable at its time from now on.
    pub fn attend(&mut self, now: Time, packets: &mut PacketStore) {
        self.settle(now, packets);
        if let Self::Queued(queued) = self {
            *self = Self::Managed(Box::new(queued.as_mut().into()));
        }
    }

    /// Advances the direction to `now`, before its results are read.
    pub fn settle(&mut self, now: Time, packets: &mut PacketStore) {
        if let Self::Queued(queued) = self {
            queued.advance(now, packets);
        }
    }

    /// Advances the queue to `now`. Calls `left` for each packet that has left it: start of its
    /// transmission, and packets and bytes then still queued.
    pub fn advance(&mut self, now: Time, left: impl FnMut(Time, u64, u64)) {
        match self {
            Self::Fifo(fifo) => fifo.advance(now, left),
            // With an observer, each departure that changes the queue is an event.
            Self::Queued(_) | Self::Managed(_) => {}
        }
    }

    /// Returns the backlog in packets.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.waiting_packets(),
            Self::Queued(queued) => queued.waiting_packets(),
            Self::Managed(managed) => managed.waiting_packets(),
        }
    }

    /// Returns the backlog in bytes.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.waiting_bytes(),
            Self::Queued(queued) => queued.waiting_bytes(),
            Self::Managed(managed) => managed.waiting_bytes(),
        }
    }

    /// Returns the number of packets queued, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.in_transit(),
            Self::Queued(queued) => queued.in_transit(),
            Self::Managed(managed) => managed.in_transit(),
        }
    }

    /// Whether it has a packet to send or an outstanding capacity request, and therefore enters
    /// each frame; only with capacity on demand.
    #[must_use]
    pub fn awaits_capacity(&self) -> bool {
        match self {
            Self::Fifo(_) | Self::Queued(_) => false,
            Self::Managed(managed) => managed.awaits_capacity(),
        }
    }

    /// Returns the number of packets held by the far end.
    #[must_use]
    pub fn held_back(&self) -> usize {
        match self {
            Self::Fifo(_) | Self::Queued(_) => 0,
            Self::Managed(managed) => managed.held_back(),
        }
    }

    /// Returns the number of packets dropped by the queue.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.dropped(),
            Self::Queued(queued) => queued.counters().dropped,
            Self::Managed(managed) => managed.counters().dropped,
        }
    }

    /// Returns the number of packets lost to errors.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.lost(),
            Self::Queued(queued) => queued.counters().lost,
            Self::Managed(managed) => managed.counters().lost,
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match self {
            Self::Fifo(fifo) => fifo.counters(),
            Self::Queued(queued) => queued.counters(),
            Self::Managed(managed) => managed.counters(),
        }
    }

    /// Returns for how long the transmitter has worked up to `now`, without pending transmissions.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        match self {
            Self::Fifo(fifo) => fifo.busy(now),
            Self::Queued(queued) => queued.busy(now),
            Self::Managed(managed) => managed.busy(now),
        }
    }

    /// Returns requested, granted and used capacity up to the frame of `now`, with capacity on
    /// demand.
    #[must_use]
    pub fn access(&self, now: Time) -> Option<AccessCounts> {
        match self {
            Self::Fifo(_) | Self::Queued(_) => None,
            Self::Managed(managed) => managed.access(now),
        }
    }

    /// Returns the bits granted until `now`, with capacity on demand.
    #[must_use]
    pub fn granted_bits(&self, now: Time) -> Option<f64> {
        match self {
            Self::Fifo(_) | Self::Queued(_) => None,
            Self::Managed(managed) => managed.granted_bits(now),
        }
    }

    /// Returns the counters per traffic class, if its queue has classes.
    #[must_use]
    pub fn classes(&self) -> &[ClassCounts] {
        match self {
            Self::Fifo(_) => &[],
            Self::Queued(queued) => queued.classes(),
            Self::Managed(managed) => managed.classes(),
        }
    }

    /// Returns a counter of its parts, all flows together; zero if no part has it.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let mut sum = 0;
        self.tally(&mut |flow, counter, value| {
            if flow.is_none() && counter == name {
                sum += value;
            }
        });
        sum
    }

    /// Reports the counters of its parts by name.
    pub fn tally(&self, each: &mut Tally<'_>) {
        match self {
            Self::Fifo(_) => {}
            Self::Queued(queued) => queued.tally(each),
            Self::Managed(managed) => managed.tally(each),
        }
    }
}
