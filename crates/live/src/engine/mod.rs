//! A network in real time: its attached nodes are devices, its clock is the wall's.
//!
//! The network asks for nothing: the [`Engine`] lets it run up to now, gives it what the devices have,
//! gives the devices what has left it, and says when it is next to be called. Who calls it, and by
//! which clock, is [`Engine::run`]'s affair or a test's.

#[doc(hidden)]
pub mod hostile;
mod lateness;
mod own;
mod prefixes;
mod refusals;

use std::io;

use bentpipe_sim::{Departure, Network, NodeId};
use bentpipe_types::{Address, Span, Time};
use bentpipe_wire::{Encoder, Refused};

use crate::Clock;
use crate::device::{Batch, Device, Sent};
use crate::poller::{self, Poller};
use crate::punctual::{Punctual, Rank};
use own::EdgeAddresses;

pub use lateness::{Lateness, LatenessSummary};
pub use own::Own;
pub use prefixes::{Prefix, Prefixes};
pub use refusals::Refusals;

/// Packets read from a device before what waits for the time gets its turn; those that come with the
/// last of them, too.
const BURST: usize = 64;

/// How long the loop sleeps at most before it asks whether it is to go on.
const NAP: Span = Span::from_millis(20);

/// How long the loop works before it asks whether it is to go on: with a thousand flows, asking is
/// looking at two thousand threads.
const BETWEEN_LOOKS: Span = Span::from_millis(2);

/// Events at once before the devices are looked at again.
const EVENTS: u64 = 4096;

/// Packets in a network at once, at most: their records are 64 bytes each, beside their bytes, which
/// are bounded on their own.
const PACKETS: usize = 1 << 20;

struct Attachment {
    node: NodeId,
    device: Box<dyn Device>,
    /// Where all that it gives goes, whatever its address; none: to whom the address is.
    towards: Option<Address>,
    /// It is among those that may have more to read.
    ready: bool,
}

/// A network, the devices at its attached nodes, and what became of the packets between them.
pub struct Engine {
    network: Network,
    attachments: Vec<Attachment>,
    /// Those that cannot be polled.
    unpolled: Vec<u16>,
    /// Those that can be polled and may have more to read.
    ready: Vec<u16>,
    /// By node: its attachment.
    device_of: Vec<Option<u16>>,
    prefixes: Prefixes,
    encoder: Encoder<EdgeAddresses>,
    lateness: Lateness,
    refusals: Refusals,
    entered: u64,
    grain: Span,
    departures: Vec<Departure>,
    batch: Batch,
    bytes: Vec<u8>,
}

impl Engine {
    /// The network, without devices as yet.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self {
            network,
            attachments: Vec::new(),
            unpolled: Vec::new(),
            ready: Vec::new(),
            device_of: Vec::new(),
            prefixes: Prefixes::default(),
            encoder: Encoder::new(EdgeAddresses::default()),
            lateness: Lateness::default(),
            refusals: Refusals::default(),
            entered: 0,
            grain: Span::ZERO,
            departures: Vec::new(),
            batch: Batch::default(),
            bytes: Vec::new(),
        }
    }

    /// Puts a device at an attached node that has these addresses.
    pub fn attach(&mut self, node: NodeId, device: Box<dyn Device>, prefixes: &[Prefix]) {
        self.put(node, device, None);
        for prefix in prefixes {
            self.prefixes.add(*prefix, node);
        }
    }

    /// Puts a device at an attached node from which all packets go towards this other one: somebody else
    /// has routed them already, and no address need be known here.
    pub fn attach_towards(&mut self, node: NodeId, device: Box<dyn Device>, other: NodeId) {
        self.put(node, device, Some(other.address()));
    }

    fn put(&mut self, node: NodeId, device: Box<dyn Device>, towards: Option<Address>) {
        let index = usize::from(node.address().0);
        if self.device_of.len() <= index {
            self.device_of.resize(index + 1, None);
        }
        let attachment = self.attachments.len() as u16;
        self.device_of[index] = Some(attachment);
        let polled = device.descriptor().is_some();
        if polled {
            self.ready.push(attachment);
        } else {
            self.unpolled.push(attachment);
        }
        self.attachments.push(Attachment {
            node,
            device,
            towards,
            ready: polled,
        });
    }

    /// A node inside the network has these addresses.
    pub fn locate(&mut self, node: NodeId, prefix: Prefix) {
        self.prefixes.add(prefix, node);
    }

    /// A node inside speaks to somebody outside in its own name.
    pub fn speaks(&mut self, own: Own) {
        *self.encoder.addressing() = EdgeAddresses(Some(own));
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, to finish it.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// How late packets left.
    #[must_use]
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What was not let in, or out.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Packets that came in.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// The network; the devices are closed.
    #[must_use]
    pub fn into_network(self) -> Network {
        self.network
    }

    /// While there is much to do, [`run`](Self::run) does it at most this often: what is due meanwhile, or
    /// comes from a device, waits for so long. A wake costs several times what a packet does, so that a
    /// grain that nobody over the network would notice saves most of it. None unless set.
    pub fn set_grain(&mut self, grain: Span) {
        self.grain = grain;
    }

    /// Does all that is due, at most a burst of each device's packets. `now` is asked as often as the
    /// time matters. True when there may be more to do at once.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn turn(&mut self, now: &mut dyn FnMut() -> Time) -> io::Result<bool> {
        let mut more = false;
        for each in 0..self.unpolled.len() {
            more |= self.read(self.unpolled[each], now)?;
        }
        // Those that have more are put behind them, for the next turn.
        let ready = self.ready.len();
        for each in 0..ready {
            let index = self.ready[each];
            self.attachments[usize::from(index)].ready = false;
            if self.read(index, now)? {
                self.is_ready(index);
                more = true;
            }
        }
        self.ready.drain(..ready);
        more |= !self.network.advance(now(), EVENTS);
        self.write(now)?;
        Ok(more)
    }

    /// There may be something to read.
    fn is_ready(&mut self, index: u16) {
        let attachment = &mut self.attachments[usize::from(index)];
        if !std::mem::replace(&mut attachment.ready, true) {
            self.ready.push(index);
        }
    }

    /// Lets in what a device has. True when there may be more.
    fn read(&mut self, index: u16, now: &mut dyn FnMut() -> Time) -> io::Result<bool> {
        let Attachment {
            node,
            device,
            towards,
            ..
        } = &mut self.attachments[usize::from(index)];
        let mut read = 0;
        while read < BURST {
            let at = now();
            if !device.receive(at, &mut self.batch)? {
                return Ok(false);
            }
            // What happens before these packets enter happens first.
            while !self.network.advance(at, EVENTS) {}
            for bytes in self.batch.packets() {
                read += 1;
                let packets = self.network.packets_mut();
                if packets.held() >= PACKETS {
                    self.refusals.crowded();
                    continue;
                }
                let EdgeAddresses(own) = self.encoder.addressing();
                let own = own.filter(|own| own.peer.0 == *node);
                let own = own.and_then(|own| own.insert(bytes, packets));
                if let Some(inserted) = own {
                    match inserted {
                        Ok(packet) => {
                            self.entered += 1;
                            self.network.inject(*node, packet);
                        }
                        Err(error) => self.refusals.count(Refused::Malformed(error)),
                    }
                    continue;
                }
                let owner = |_, destination| {
                    if towards.is_some() {
                        return *towards;
                    }
                    let owner = self.prefixes.owner(destination)?;
                    (owner != *node).then(|| owner.address())
                };
                match bentpipe_wire::insert(bytes, packets, node.address(), owner) {
                    Ok(packet) => {
                        self.entered += 1;
                        self.network.inject(*node, packet);
                    }
                    Err(refused) => self.refusals.count(refused),
                }
            }
            let uncut = self.batch.take_uncut();
            read += uncut as usize;
            self.refusals.uncut += uncut;
        }
        Ok(true)
    }

    /// Gives the devices what has left the network.
    fn write(&mut self, now: &mut dyn FnMut() -> Time) -> io::Result<()> {
        let mut departures = std::mem::take(&mut self.departures);
        self.network.departures(&mut departures);
        for departure in departures.drain(..) {
            let Departure { node, at, packet } = departure;
            let packets = self.network.packets_mut();
            let encoded = self.encoder.encode(packets, packet, &mut self.bytes);
            packets.release(packet);
            let device = self.device_of.get(usize::from(node.address().0));
            let Some(index) = device.copied().flatten().filter(|_| encoded.is_ok()) else {
                self.refusals.unencodable += 1;
                continue;
            };
            let time = now();
            self.lateness.note(time.since(at));
            let device = &mut self.attachments[usize::from(index)].device;
            match device.send(time, &self.bytes)? {
                Sent::Taken => {}
                Sent::Refused => self.refusals.not_taken += 1,
                Sent::Down => self.refusals.device_down += 1,
            }
        }
        self.departures = departures;
        Ok(())
    }

    /// When it is next to be called, if nothing can be read before.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        let devices = self.unpolled.iter();
        let arrivals =
            devices.filter_map(|index| self.attachments[usize::from(*index)].device.next_arrival());
        arrivals.chain(self.network.next_event()).min()
    }

    /// Runs by the clock until `done` says so, or for `limit`. Returns whether `done` did.
    ///
    /// `done` is asked every 2 ms while there is something to do, and else every 20 ms.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn run(
        &mut self,
        clock: Clock,
        limit: Span,
        mut done: impl FnMut(&mut Network, Time) -> bool,
    ) -> io::Result<bool> {
        let _punctual = Punctual::new(Rank::Network);
        let mut poller = self.poller()?;
        let mut next_look = clock.now();
        let end = next_look + limit;
        let mut woken = next_look;
        loop {
            let more = self.turn(&mut || clock.now())?;
            let now = clock.now();
            if now >= next_look {
                next_look = now + BETWEEN_LOOKS;
                if done(&mut self.network, now) {
                    return Ok(true);
                }
            }
            if now >= end {
                return Ok(false);
            }
            let next = match self.next_event() {
                _ if more => now,
                Some(next) => next.min(now + NAP),
                None => now + NAP,
            };
            let rested = woken + self.grain;
            if now < next && now < rested {
                // What the kernel has answered at once is let in at once.
                if poller.wait(Span::ZERO, |index| self.is_ready(index as u16))? {
                    continue;
                }
                poller::sleep(clock.until(rested.min(end)));
                woken = clock.now();
                poller.wait(Span::ZERO, |index| self.is_ready(index as u16))?;
                continue;
            }
            let span = clock.until(next.min(end));
            poller.wait(span, |index| self.is_ready(index as u16))?;
            if span > Span::ZERO {
                woken = clock.now();
            }
        }
    }

    /// For the devices that can be polled.
    fn poller(&self) -> io::Result<Poller> {
        let poller = Poller::new()?;
        for (index, attachment) in (0..).zip(&self.attachments) {
            if let Some(descriptor) = attachment.device.descriptor() {
                poller.add_read(descriptor, index)?;
            }
        }
        Ok(poller)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
