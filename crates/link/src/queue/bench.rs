//! Test fixture: a queue with packets to offer.

use bentpipe_types::{
    Ecn, Endpoint, IpVersion, Packet, PacketRef, PacketStore, RandomStream, Span, Time,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{QueueCtx, QueueDiscipline, Verdict};

/// A queue, a clock that stands still, and random numbers.
pub(super) struct Bench<Q> {
    pub(super) queue: Q,
    pub(super) packets: PacketStore,
    pub(super) random: RandomStream,
    pub(super) now: Time,
}

/// Fate of the packets of some steps.
#[derive(Default)]
pub(super) struct Done {
    offered: u64,
    refused: u64,
    sent: u64,
}

/// A packet that has left the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Left {
    pub(super) flow: u16,
    /// Length with headers.
    pub(super) length: u64,
    pub(super) marked: bool,
}

impl<Q: QueueDiscipline> Bench<Q> {
    pub(super) fn new(queue: Q) -> Self {
        Self {
            queue,
            packets: PacketStore::default(),
            random: RandomStream::new(11, "test", "queue"),
            now: Time::ZERO,
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Q, &mut QueueCtx<'_>) -> R) -> R {
        let mut cx = QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        };
        act(&mut self.queue, &mut cx)
    }

    /// Offers a packet of this length with headers, at least 40.
    pub(super) fn offer(&mut self, flow: u16, length: u64, ecn: Ecn) -> (Verdict, PacketRef) {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.source.port = flow;
        packet.payload_length = (length - 40) as u16;
        packet.set_ecn(ecn);
        let packet = self.packets.insert(packet);
        let verdict = self.with(|queue, cx| queue.enqueue(packet, cx));
        if verdict == Verdict::Dropped {
            self.packets.release(packet);
        }
        (verdict, packet)
    }

    /// Offers a packet that is not ECN-capable.
    pub(super) fn put(&mut self, flow: u16, length: u64) -> Verdict {
        self.offer(flow, length, Ecn::NotCapable).0
    }

    /// After a time, offers a packet (if `what` is not 0) or takes one, which exists if any is
    /// queued.
    pub(super) fn step(
        &mut self,
        (what, flow, length, after): (u8, u16, u64, Span),
        ecn: Ecn,
        done: &mut Done,
    ) -> Result<(), TestCaseError> {
        self.now += after;
        if what == 0 {
            let waits = self.queue.packets() > 0;
            let taken = self.take().is_some();
            prop_assert_eq!(taken, waits);
            done.sent += u64::from(taken);
        } else {
            done.offered += 1;
            done.refused += u64::from(self.offer(flow, length, ecn).0 == Verdict::Dropped);
        }
        let gone = done.refused + self.queue.given_up().dropped + done.sent;
        prop_assert_eq!(done.offered, gone + self.queue.packets());
        prop_assert_eq!(self.packets.held() as u64, self.queue.packets());
        Ok(())
    }

    /// Takes the next packet to be sent.
    pub(super) fn take(&mut self) -> Option<Left> {
        let (packet, _) = self.with(|queue, cx| queue.dequeue(cx))?;
        let record = self.packets.get(packet);
        let left = Left {
            flow: record.source.port,
            length: record.length().get(),
            marked: record.ecn() == Ecn::Congestion,
        };
        self.packets.release(packet);
        Some(left)
    }
}
