//! A link between two TUN devices, in real time: the same queue, rate and delay that the simulator
//! has.

use std::io;

use bentpipe_link::{Arrival, Counters, Direction, Fifo, Settings, Verdict};
use bentpipe_types::{Bytes, Endpoint, IpVersion, Packet, PacketRef, PacketStore, Span, Time};
use rustc_hash::FxHashMap;

use crate::driver::{BUFFER, BURST, NAP, wait};
use crate::{Clock, TunDevice};

/// How late packets left the relay, against the time that the link has for them.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Nanoseconds, one for each packet, in the order of their leaving.
    late: Vec<u32>,
}

impl Lateness {
    fn note(&mut self, span: Span) {
        // A bound on memory: three hours at 10 Mbit/s.
        if self.late.len() < 10_000_000 {
            let nanoseconds = u32::try_from(span.as_nanos()).unwrap_or(u32::MAX);
            self.late.push(nanoseconds);
        }
    }

    /// The lateness that a share `q` of the packets do not exceed.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let mut sorted = self.late.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let index = (q.clamp(0.0, 1.0) * last as f64) as usize;
        Some(Span::from_nanos(sorted[index].into()))
    }

    /// Packets.
    #[must_use]
    pub fn count(&self) -> usize {
        self.late.len()
    }
}

/// One way of the relay: a direction of a link, and the bytes of the packets that are on it.
#[derive(Debug)]
struct Way {
    link: Fifo,
    packets: PacketStore,
    bytes: FxHashMap<PacketRef, Vec<u8>>,
    spare: Vec<Vec<u8>>,
    lateness: Lateness,
}

impl Way {
    fn new(settings: Settings) -> io::Result<Self> {
        match Direction::new(settings) {
            Direction::Fifo(link) => Ok(Self {
                link,
                packets: PacketStore::default(),
                bytes: FxHashMap::default(),
                spare: Vec::new(),
                lateness: Lateness::default(),
            }),
            Direction::Managed(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "only a drop-tail queue, and nothing at the link's ends",
            )),
        }
    }

    fn offer(&mut self, now: Time, packet: &[u8]) {
        // The link asks nothing of a packet but its length.
        let end = Endpoint::default();
        let record = Packet::new(end, end, IpVersion::V4);
        let reference = self.packets.insert(record);
        let length = Bytes::new(packet.len() as u64);
        if self.link.enqueue(now, reference, length) == Verdict::Dropped {
            self.packets.release(reference);
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.bytes.insert(reference, bytes);
    }

    fn arrive(&mut self, now: Time, mut deliver: impl FnMut(&[u8])) {
        while let Some(due) = self.link.next_arrival().filter(|due| *due <= now) {
            let Some(arrival) = self.link.arrive(now) else {
                return;
            };
            let (reference, intact) = match arrival {
                Arrival::Delivered(reference) => (reference, true),
                Arrival::Lost(reference) => (reference, false),
            };
            self.packets.release(reference);
            let Some(bytes) = self.bytes.remove(&reference) else {
                debug_assert!(false, "a packet without bytes");
                continue;
            };
            if intact {
                self.lateness.note(now.since(due));
                deliver(&bytes);
            }
            self.spare.push(bytes);
        }
    }
}

/// What a relay did in one direction.
#[derive(Clone, Debug)]
pub struct WayReport {
    /// What the link counted.
    pub counters: Counters,
    /// How late packets left.
    pub lateness: Lateness,
}

/// Carries packets between two devices, `ways[0]` from the first to the second, until `done` says so
/// or for `limit`. Returns whether `done` did, and what each way has done.
///
/// # Errors
/// Those of the devices; a link that is more than a queue, a rate and a delay.
pub fn relay(
    devices: &mut [TunDevice; 2],
    ways: [Settings; 2],
    clock: Clock,
    limit: Span,
    mut done: impl FnMut() -> bool,
) -> io::Result<(bool, [WayReport; 2])> {
    let [there, back] = ways;
    let mut ways = [Way::new(there)?, Way::new(back)?];
    let mut buffer = vec![0; BUFFER];
    let end = clock.now() + limit;
    let finished = loop {
        for (from, way) in ways.iter_mut().enumerate() {
            for _ in 0..BURST {
                let now = clock.now();
                let Some(length) = devices[from].receive(now, &mut buffer)? else {
                    break;
                };
                way.offer(now, &buffer[..length]);
            }
        }
        let now = clock.now();
        for (from, way) in ways.iter_mut().enumerate() {
            let to = &mut devices[1 - from];
            way.arrive(now, |packet| to.send(now, packet));
        }
        if done() {
            break true;
        }
        if now >= end {
            break false;
        }
        let next = ways.iter().filter_map(|way| way.link.next_arrival()).min();
        let next = next.map_or(now + NAP, |next| next.min(now + NAP));
        wait(&[devices[0].tun(), devices[1].tun()], clock.until(next))?;
    };
    let reports = ways.map(|way| WayReport {
        counters: way.link.counters(),
        lateness: way.lateness,
    });
    Ok((finished, reports))
}
