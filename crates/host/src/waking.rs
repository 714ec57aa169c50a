//! Hosts that take longer to answer the longer they have slept.
//!
//! A simulated host answers in the instant in which it is asked. So the first acknowledgment of a round trip and the ones
//! behind it let segments go after the same time, none, and what they let go comes to a full queue in the very nanosecond
//! in which a packet leaves that: the first one began the transmissions, and the others come in step with them. No machine
//! is so even. Linux's TCP answered 905 acknowledgments that came within 2 ms of the packet before in 14 us, those after
//! 5 ms or more in 21, and those after 100 ms in 41 (medians; docs/linux.md): a processor with nothing to do stops its tick
//! and sleeps the deeper the longer (`tick_nohz_idle_stop_tick`, `teo_select`), and finds less in its caches.
//!
//! By how much is the machine's affair, and nothing of it is here but the order: who has slept longer comes later, by
//! nanoseconds, so that nothing but what would be at the same time is in another order for it.
//!
//! An application is another matter. It sleeps until its connection is there, and a processor has to change to it first, so
//! that it writes when the acknowledgment that ends the handshake has left long ago: a short queue has room for one segment
//! more of the first window then (docs/linux.md).

use std::collections::VecDeque;

use bentpipe_types::{PacketRef, Port, Span, Time};

use crate::SocketId;

/// A tick of Linux's clock, with HZ = 250. Who has slept for less has not slept.
const TICK: Span = Span::from_millis(4);

/// So long after its connection is there an application hears of it.
const CHANGE: Span = Span::from_micros(100);

/// What a host that wakes keeps in mind.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    /// Whose applications are being woken, and when they are awake.
    called: VecDeque<(Time, SocketId)>,
    /// When something last happened here, or will have: the last of those that are held is told.
    awake: Time,
    /// What came while it slept, and when the host has woken up.
    held: VecDeque<(Time, (Port, PacketRef))>,
}

impl Waking {
    /// A packet has come `now`. If it wakes the host, or comes while that wakes, it is held until the time that is returned.
    pub(crate) fn hold(&mut self, from: Port, packet: PacketRef, now: Time) -> Option<Time> {
        let awake = (now + waking_up(now.since(self.awake))).max(self.awake);
        self.awake = awake;
        if awake == now {
            return None;
        }
        self.held.push_back((awake, (from, packet)));
        Some(awake)
    }

    /// The next packet that is to be told by now.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Port, PacketRef)> {
        take_due(&mut self.held, now)
    }

    /// The application of a connection is to hear of something: when it will.
    pub(crate) fn call(&mut self, id: SocketId, now: Time) -> Time {
        let awake = now + CHANGE;
        self.called.push_back((awake, id));
        awake
    }

    /// The next connection whose application is awake by now.
    pub(crate) fn answered(&mut self, now: Time) -> Option<SocketId> {
        take_due(&mut self.called, now)
    }

    /// The host has done something of its own accord.
    pub(crate) fn acted(&mut self, now: Time) {
        self.awake = self.awake.max(now);
    }

    /// Whether it holds no packet and wakes no application.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.called.is_empty()
    }

    /// Packets held.
    pub(crate) fn packets(&self) -> usize {
        self.held.len()
    }
}

/// The first of a queue, if its time has come.
fn take_due<T>(queue: &mut VecDeque<(Time, T)>, now: Time) -> Option<T> {
    let (at, _) = queue.front()?;
    if *at > now {
        return None;
    }
    queue.pop_front().map(|(_, first)| first)
}

/// How long it takes to wake up after such a sleep: a nanosecond for a tick, and one more for each doubling.
fn waking_up(slept: Span) -> Span {
    let ticks = slept.as_nanos() / TICK.as_nanos();
    Span::from_nanos((u64::BITS - ticks.leading_zeros()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Address, Endpoint, IpVersion, Packet, PacketStore};

    const PORT: Port = Port(0);

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn who_slept_longer_wakes_later_and_who_did_not_sleep_at_once() {
        let woken = |milliseconds| waking_up(Span::from_millis(milliseconds)).as_nanos();
        assert_eq!(
            [0, 3, 4, 7, 8, 100, 1_000].map(woken),
            [0, 0, 1, 1, 2, 5, 8]
        );
        // A year.
        assert_eq!(woken(31_536_000_000), 33);
    }

    #[test]
    fn packets_are_told_in_the_order_in_which_they_came() {
        let mut packets = PacketStore::default();
        let end = Endpoint {
            address: Address(0),
            port: 1,
        };
        let mut packet = || packets.insert(Packet::new(end, end, IpVersion::V4));
        let [first, second, third] = [packet(), packet(), packet()];
        let mut waking = Waking::default();
        let nanosecond = Span::from_nanos(1);
        let woken = at(100) + nanosecond * 5;
        assert_eq!(waking.hold(PORT, first, at(100)), Some(woken));
        // It is waking up still.
        let meanwhile = waking.hold(PORT, second, at(100) + nanosecond);
        assert_eq!(meanwhile, Some(woken));
        assert_eq!((waking.take(at(100)), waking.packets()), (None, 2));
        assert_eq!(waking.take(woken), Some((PORT, first)));
        assert_eq!(waking.take(woken), Some((PORT, second)));
        assert_eq!(waking.take(woken), None);
        assert_eq!(waking.hold(PORT, third, at(101)), None, "it is awake");
        waking.acted(at(200));
        assert_eq!(waking.hold(PORT, third, at(203)), None, "it was busy");
    }
}
