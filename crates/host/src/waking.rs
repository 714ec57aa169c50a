//! Wake-up delays of a host and of its applications, for hosts that behave like Linux's.
//!
//! A simulated host that answers at once sends the first acknowledgment of a round trip and those
//! behind it in step: they reach a full queue in the very nanosecond in which a packet leaves it.
//! A processor with nothing to do stops its tick and enters deeper idle states the longer it is
//! idle (`tick_nohz_idle_stop_tick`, `teo_select`). Linux's TCP answered 905 acknowledgments that
//! came within 2 ms of the packet before in 14 us, those after 5 ms or more in 21, and those after
//! 100 ms in 41 (medians).
//!
//! By default a host that has been idle longer answers later by nanoseconds. This decides the order
//! of simultaneous events and changes nothing else (docs/decisions/0011-wake-up-order-of-hosts.md).
//! An application runs 100 us after its event.
//!
//! A host that [draws its delays](Waking::draw) takes both from distributions that were measured
//! with a kernel (docs/tcp.md, host timing).

use std::collections::VecDeque;

use bentpipe_tcp::HostClock;
use bentpipe_types::{PacketRef, Port, RandomStream, Span, Time};

use crate::SocketId;

/// Delay from an event to the application that it wakes, where it is not drawn.
const APPLICATION_DELAY: Span = Span::from_micros(100);

/// Packets and applications that wait for a wake-up.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    /// Connections whose applications are being woken, and when these run.
    called: VecDeque<(Time, SocketId)>,
    /// Time of the last event at this host. In the future while packets are held.
    awake: Time,
    /// Packets that arrived before the host was awake, and when they are processed.
    held: VecDeque<(Time, (Port, PacketRef))>,
    /// Random streams of the delays, if they are drawn.
    drawn: Option<Drawn>,
}

/// Random streams of a host's delays. With one stream each, an additional application changes no
/// packet's delay.
#[derive(Debug)]
struct Drawn {
    packets: RandomStream,
    applications: RandomStream,
}

/// Shortest idle time after which the delay of a packet is drawn. A host that was idle for less
/// answers at once.
const DRAWN_AFTER: Span = Span::from_millis(1);

/// Shortest idle time after which a packet's delay is that of a deeper idle state.
const DEEP_AFTER: Span = Span::from_millis(32);

/// Shares of all delays, in percent.
const PERCENT: [f64; 13] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.9,
];

/// Delays in microseconds that the first shares of [`PERCENT`] do not exceed. A distribution ends
/// at the largest share that at least two measured delays exceed: one of 40 delays at 95%. Delays
/// beyond it are taken for its last one.
type Quantiles = [u16];

/// From a packet to its answer, after an idle time of 1 to 32 ms: 103,160 delays.
const PACKET: &Quantiles = &[5, 12, 15, 17, 19, 23, 27, 32, 38, 45, 51, 117, 1187];

/// From a packet to its answer, after a longer idle time: 398 delays.
const PACKET_AFTER_DEEP_SLEEP: &Quantiles = &[21, 36, 45, 55, 63, 71, 77, 80, 86, 97, 105, 141];

/// From the acknowledgment that ends a handshake to the first segment with data: 40 delays.
const APPLICATION: &Quantiles = &[129, 218, 234, 242, 257, 277, 291, 306, 314, 336, 363];

/// Draws a delay: linear between two quantiles, the last one beyond them.
fn delay(quantiles: &Quantiles, stream: &mut RandomStream) -> Span {
    let percents = &PERCENT[..quantiles.len()];
    let percent = stream.uniform() * 100.0;
    let above = percents.partition_point(|each| *each <= percent);
    let above = above.min(percents.len() - 1);
    let [low, high] = [above - 1, above].map(|place| f64::from(quantiles[place]));
    let width = percents[above] - percents[above - 1];
    let share = ((percent - percents[above - 1]) / width).min(1.0);
    Span::from_nanos(((low + share * (high - low)) * 1e3) as u64)
}

impl Waking {
    /// Draws the delays of packets and of applications, each from its stream, from now on.
    pub(crate) fn draw(&mut self, packets: RandomStream, applications: RandomStream) {
        self.drawn = Some(Drawn {
            packets,
            applications,
        });
    }

    /// Holds a packet that arrives `now`, if it wakes the host or arrives during a wake-up. Returns
    /// when it is to be processed, or `None` if the host is awake.
    pub(crate) fn hold(&mut self, from: Port, packet: PacketRef, now: Time) -> Option<Time> {
        let slept = now.since(self.awake);
        let wakes_for = match &mut self.drawn {
            None => waking_up(slept),
            Some(_) if slept < DRAWN_AFTER => Span::ZERO,
            Some(drawn) if slept < DEEP_AFTER => delay(PACKET, &mut drawn.packets),
            Some(drawn) => delay(PACKET_AFTER_DEEP_SLEEP, &mut drawn.packets),
        };
        let awake = (now + wakes_for).max(self.awake);
        self.awake = awake;
        if awake == now {
            return None;
        }
        self.held.push_back((awake, (from, packet)));
        Some(awake)
    }

    /// Removes and returns the next packet that is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Port, PacketRef)> {
        take_due(&mut self.held, now)
    }

    /// Wakes the application of a connection. Returns when it runs.
    pub(crate) fn call(&mut self, id: SocketId, now: Time) -> Time {
        let change = match &mut self.drawn {
            None => APPLICATION_DELAY,
            Some(drawn) => delay(APPLICATION, &mut drawn.applications),
        };
        // One processor runs them in the order in which they are woken.
        let last = self.called.back().map_or(now, |(last, _)| *last);
        let awake = (now + change).max(last);
        self.called.push_back((awake, id));
        awake
    }

    /// Removes and returns the next connection whose application runs by now.
    pub(crate) fn answered(&mut self, now: Time) -> Option<SocketId> {
        take_due(&mut self.called, now)
    }

    /// Records an event at the host, such as a timer or a write.
    pub(crate) fn acted(&mut self, now: Time) {
        self.awake = self.awake.max(now);
    }

    /// Whether no packet is held and no application is being woken.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.called.is_empty()
    }

    /// Number of held packets.
    pub(crate) fn packets(&self) -> usize {
        self.held.len()
    }
}

/// Removes and returns the first entry of a queue, if it is due.
fn take_due<T>(queue: &mut VecDeque<(Time, T)>, now: Time) -> Option<T> {
    let (at, _) = queue.front()?;
    if *at > now {
        return None;
    }
    queue.pop_front().map(|(_, first)| first)
}

/// Delay after an idle time: none for less than a tick, a nanosecond for one tick, and one more for
/// each doubling.
fn waking_up(slept: Span) -> Span {
    let ticks = slept.as_nanos() / HostClock::TICK.as_nanos();
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
    fn longer_idle_times_have_longer_delays() {
        let woken = |milliseconds| waking_up(Span::from_millis(milliseconds)).as_nanos();
        assert_eq!(
            [0, 3, 4, 7, 8, 100, 1_000].map(woken),
            [0, 0, 1, 1, 2, 5, 8]
        );
        // A year.
        assert_eq!(woken(31_536_000_000), 33);
    }

    /// As many draws lie below each quantile as measured delays did; none exceeds the last one.
    #[test]
    fn delays_have_the_measured_distribution() {
        for quantiles in [PACKET, PACKET_AFTER_DEEP_SLEEP, APPLICATION] {
            let mut stream = RandomStream::new(1, "host", "test");
            let mut below = vec![0_u32; quantiles.len()];
            let last = quantiles.len() - 1;
            for _ in 0..100_000 {
                let drawn = delay(quantiles, &mut stream).as_nanos();
                assert!(drawn >= u64::from(quantiles[0]) * 1_000);
                assert!(drawn <= u64::from(quantiles[last]) * 1_000);
                for (count, quantile) in below.iter_mut().zip(quantiles.iter().copied()) {
                    *count += u32::from(drawn < u64::from(quantile) * 1_000);
                }
            }
            for (count, percent) in below.into_iter().zip(PERCENT) {
                // The standard error is 0.16% at most.
                let share = f64::from(count) / 1_000.0;
                assert!((share - percent).abs() < 0.8, "{share} at {percent}%");
            }
        }
    }

    /// Packets are never reordered, and a host that was awake within a millisecond answers at once.
    #[test]
    fn drawn_delays_do_not_reorder_packets() {
        let mut packets = PacketStore::default();
        let end = Endpoint {
            address: Address(0),
            port: 1,
        };
        let mut waking = Waking::default();
        let stream = |purpose| RandomStream::new(7, "host", purpose);
        waking.draw(stream("packets"), stream("applications"));
        let mut now = at(100);
        let (mut last, mut held, mut at_once) = (Time::ZERO, 0, 0);
        for step in 0..1_000_u64 {
            now += Span::from_micros(20 + 1_300 * (step % 3));
            let packet = packets.insert(Packet::new(end, end, IpVersion::V4));
            let told = waking.hold(PORT, packet, now);
            at_once += u32::from(told.is_none());
            held += u32::from(told.is_some());
            let told = told.unwrap_or(now);
            assert!(told >= last && told >= now, "{told:?} {last:?} {now:?}");
            last = told;
            while waking.take(now).is_some() {}
        }
        assert!(held > 500 && at_once > 100, "{held} {at_once}");
    }

    #[test]
    fn packets_are_processed_in_order_of_arrival() {
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
        // The host is still waking up.
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
