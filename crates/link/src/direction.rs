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

/// What one direction of a link is made of.
#[derive(Debug)]
pub struct Settings {
    /// Rate of the transmitter.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// What waits for the transmitter.
    pub queue: Queueing,
    /// What loses packets on the way; a packet is lost if any of them loses it.
    pub errors: Vec<ErrorModel>,
    /// Bits on the air per bit of the packet (16/15 for the VSAT of obata2000, section 4.2.2).
    pub redundancy: f64,
    /// What its two ends do to packets besides.
    pub ends: Ends,
    /// How it changes with time, if it does, and what its random streams are called.
    pub changes: Option<(Changes, Streams)>,
    /// Its place on a carrier, if it sends what a hub grants. Its rate then changes with that alone: `changes` has
    /// neither a rate's nor outages.
    pub access: Option<Access>,
}

/// Which random streams a direction that changes draws from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Streams {
    /// The key of all randomness.
    pub seed: u64,
    /// The direction's name.
    pub component: String,
}

/// What waits for the transmitter.
#[derive(Debug)]
pub enum Queueing {
    /// First in, first out, up to a limit.
    DropTail(DropTail),
    /// A queue that decides when the transmitter is free.
    Discipline {
        /// The queue.
        queue: Box<dyn QueueDiscipline>,
        /// What it draws from.
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
    /// Behind a drop-tail queue: a departure is known when a packet arrives.
    Fifo(Fifo),
    /// Behind any other queue, which is asked when the transmitter is free: nobody sees that at the time.
    Queued(Box<Queued>),
    /// With something at its ends, on a path that changes, with capacity on demand, or looked at: each departure is an
    /// event.
    Managed(Box<Managed>),
}

impl Direction {
    /// An empty, idle direction.
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

    /// An empty, idle direction of which each arrival is an event, whatever its queue.
    #[must_use]
    pub fn managed(settings: Settings) -> Self {
        let transmitter = Transmitter::new(settings.rate, settings.redundancy);
        let (queue, random): (Box<dyn QueueDiscipline>, _) = match settings.queue {
            // It draws nothing.
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

    /// Somebody wants to see what happens here at the time at which it happens.
    pub fn attend(&mut self, now: Time, packets: &mut PacketStore) {
        self.settle(now, packets);
        if let Self::Queued(queued) = self {
            *self = Self::Managed(Box::new(queued.as_mut().into()));
        }
    }

    /// Brings what results say of it up to `now`.
    pub fn settle(&mut self, now: Time, packets: &mut PacketStore) {
        if let Self::Queued(queued) = self {
            queued.advance(now, packets);
        }
    }

    /// Brings the queue up to `now`, telling `left` of each packet that has left it meanwhile: when
    /// it began to be transmitted, and how many packets and bytes then still waited.
    pub fn advance(&mut self, now: Time, left: impl FnMut(Time, u64, u64)) {
        match self {
            Self::Fifo(fifo) => fifo.advance(now, left),
            // Where somebody looks, each departure that changes its queue is an event.
            Self::Queued(_) | Self::Managed(_) => {}
        }
    }

    /// Packets waiting.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.waiting_packets(),
            Self::Queued(queued) => queued.waiting_packets(),
            Self::Managed(managed) => managed.waiting_packets(),
        }
    }

    /// Bytes waiting.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.waiting_bytes(),
            Self::Queued(queued) => queued.waiting_bytes(),
            Self::Managed(managed) => managed.waiting_bytes(),
        }
    }

    /// Packets in the queue, in transmission or in flight.
    #[must_use]
    pub fn in_transit(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.in_transit(),
            Self::Queued(queued) => queued.in_transit(),
            Self::Managed(managed) => managed.in_transit(),
        }
    }

    /// Whether it has a packet to send, or a request that the hub has still to answer, and therefore enters each
    /// frame: only with capacity on demand.
    #[must_use]
    pub fn awaits_capacity(&self) -> bool {
        match self {
            Self::Fifo(_) | Self::Queued(_) => false,
            Self::Managed(managed) => managed.awaits_capacity(),
        }
    }

    /// Packets that the far end holds back.
    #[must_use]
    pub fn held_back(&self) -> usize {
        match self {
            Self::Fifo(_) | Self::Queued(_) => 0,
            Self::Managed(managed) => managed.held_back(),
        }
    }

    /// Packets that its queue dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.dropped(),
            Self::Queued(queued) => queued.counters().dropped,
            Self::Managed(managed) => managed.counters().dropped,
        }
    }

    /// Packets lost to errors so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match self {
            Self::Fifo(fifo) => fifo.lost(),
            Self::Queued(queued) => queued.counters().lost,
            Self::Managed(managed) => managed.counters().lost,
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match self {
            Self::Fifo(fifo) => fifo.counters(),
            Self::Queued(queued) => queued.counters(),
            Self::Managed(managed) => managed.counters(),
        }
    }

    /// Time the transmitter has worked, up to `now`: work it was given but has not done is left out.
    #[must_use]
    pub fn busy(&self, now: Time) -> Span {
        match self {
            Self::Fifo(fifo) => fifo.busy(now),
            Self::Queued(queued) => queued.busy(now),
            Self::Managed(managed) => managed.busy(now),
        }
    }

    /// What it has asked a hub for, got and used up to the frame of `now`, where it has to ask.
    #[must_use]
    pub fn access(&self, now: Time) -> Option<AccessCounts> {
        match self {
            Self::Fifo(_) | Self::Queued(_) => None,
            Self::Managed(managed) => managed.access(now),
        }
    }

    /// Bits that a hub has granted it until `now`, where it has to ask.
    #[must_use]
    pub fn granted_bits(&self, now: Time) -> Option<f64> {
        match self {
            Self::Fifo(_) | Self::Queued(_) => None,
            Self::Managed(managed) => managed.granted_bits(now),
        }
    }

    /// What has become of each class of traffic, where its queue knows classes.
    #[must_use]
    pub fn classes(&self) -> &[ClassCounts] {
        match self {
            Self::Fifo(_) => &[],
            Self::Queued(queued) => queued.classes(),
            Self::Managed(managed) => managed.classes(),
        }
    }

    /// One counter of its parts, all flows together; zero if none has it.
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

    /// Tells what its parts have done, by name.
    pub fn tally(&self, each: &mut Tally<'_>) {
        match self {
            Self::Fifo(_) => {}
            Self::Queued(queued) => queued.tally(each),
            Self::Managed(managed) => managed.tally(each),
        }
    }
}
