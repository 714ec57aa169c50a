//! A queue in front of a link, as in another simulator.

use bentpipe_link::{Direction, Managed, QueueDiscipline, Queueing, Settings, Verdict, Watch};
use bentpipe_types::{BitRate, Packet, PacketStore, RandomStream, Span, Time};

/// A link with this queue, and its packets in transit.
pub(crate) struct Bottleneck<W> {
    pub(crate) link: Box<Managed>,
    pub(crate) watch: W,
    packets: PacketStore,
}

impl<W: Watch> Bottleneck<W> {
    /// Creates a link of this rate and random stream.
    pub(crate) fn new(
        rate: u64,
        delay: Span,
        queue: Box<dyn QueueDiscipline>,
        seed: u64,
        watch: W,
    ) -> Self {
        let random = RandomStream::new(seed, "witness", "queue");
        let Direction::Managed(link) = Direction::managed(Settings::new(
            BitRate::new(rate).expect("not zero"),
            delay,
            Queueing::Discipline { queue, random },
        )) else {
            unreachable!("it is managed");
        };
        Self {
            link,
            watch,
            packets: PacketStore::default(),
        }
    }

    /// Processes events until `until`; arriving packets are released.
    pub(crate) fn run(&mut self, until: Time) {
        let mut out = Vec::new();
        while let Some(at) = self.link.next_event().filter(|at| *at <= until) {
            (self.link).on_event(at, &mut self.packets, &mut self.watch, &mut out);
            out.drain(..)
                .for_each(|packet| self.packets.release(packet));
        }
    }

    pub(crate) fn offer(&mut self, now: Time, packet: Packet) {
        let packet = self.packets.insert(packet);
        let verdict = (self.link).enqueue(now, packet, &mut self.packets, &mut self.watch);
        if verdict == Verdict::Dropped {
            self.packets.release(packet);
        }
    }

    /// Runs until every packet has left or was dropped.
    pub(crate) fn finish(&mut self) {
        self.run(Time::LAST);
        assert_eq!(self.packets.held(), 0, "every packet left or was dropped");
    }
}
