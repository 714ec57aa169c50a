//! Runs a network in real time: devices are attached to its edge nodes, and a wall clock drives it.
//!
//! The [`Engine`] runs the network up to the present, injects packets read from the devices, and
//! writes packets that have left the network to the devices. It states when it must be called next.
//! [`Engine::run`] or a test calls it and provides the time.

mod acknowledgment_thinning;
#[doc(hidden)]
pub mod hostile;
mod lateness;
mod own_addresses;
mod prefixes;
mod refusals;

use std::io;

use bentpipe_sim::{Departure, Network, NodeId};
use bentpipe_types::{Address, Span, Time};
use bentpipe_wire::{Encoder, Refused};

use crate::Clock;
use crate::device::{Batch, Device, Sent};
use crate::poller::{self, Poller};
use crate::realtime_priority::{PriorityLevel, RealtimePriority};
use acknowledgment_thinning::AcknowledgmentThinning;
use own_addresses::EdgeAddresses;

pub use lateness::{Lateness, LatenessSummary};
pub use own_addresses::OwnAddresses;
pub use prefixes::{Prefix, Prefixes};
pub use refusals::Refusals;

/// Packets read from a device before due events are processed. Packets of the same read as the last
/// one are included.
const BURST: usize = 32;

/// Longest sleep between checks whether to stop.
const MAX_SLEEP: Span = Span::from_millis(20);

/// Minimum time between checks whether to stop, while busy. With a thousand flows, a check examines
/// two thousand threads.
const CHECK_INTERVAL: Span = Span::from_millis(2);

/// Events processed before the devices are read again.
const EVENTS_PER_TURN: u64 = 4096;

/// Most packets in the network at once: records take 64 bytes each. The memory for their bytes has
/// a limit of its own.
const MAX_PACKETS: usize = 1 << 20;

struct Attachment {
    node: NodeId,
    device: Box<dyn Device>,
    /// Destination of all its packets regardless of their address; `None`: the owner of the
    /// destination address.
    towards: Option<Address>,
    /// Whether it is in the list of devices that may have packets to read.
    ready: bool,
}

/// A network in real time, the devices at its edge, and counters of the packets that crossed it.
pub struct Engine {
    network: Network,
    attachments: Vec<Attachment>,
    /// Attachments whose device cannot be polled.
    unpolled: Vec<u16>,
    /// Attachments whose device can be polled and may have packets to read.
    ready: Vec<u16>,
    /// Index of each node's attachment, by node; `None` if the node has no device.
    device_of: Vec<Option<u16>>,
    prefixes: Prefixes,
    encoder: Encoder<EdgeAddresses>,
    lateness: Lateness,
    refusals: Refusals,
    entered: u64,
    wake_interval: Span,
    departures: Vec<Departure>,
    thins_acknowledgments: bool,
    acknowledgment_thinning: AcknowledgmentThinning,
    batch: Batch,
    bytes: Vec<u8>,
}

impl Engine {
    /// Creates an engine without devices.
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
            wake_interval: Span::ZERO,
            departures: Vec::new(),
            thins_acknowledgments: false,
            acknowledgment_thinning: AcknowledgmentThinning::default(),
            batch: Batch::default(),
            bytes: Vec::new(),
        }
    }

    /// Attaches a device to a node that has these addresses.
    pub fn attach(&mut self, node: NodeId, device: Box<dyn Device>, prefixes: &[Prefix]) {
        self.add_attachment(node, device, None);
        for prefix in prefixes {
            self.prefixes.add(*prefix, node);
        }
    }

    /// Attaches a device to a node whose packets all go to `other`. Something outside has routed
    /// them already, so that no addresses are needed.
    pub fn attach_towards(&mut self, node: NodeId, device: Box<dyn Device>, other: NodeId) {
        self.add_attachment(node, device, Some(other.address()));
    }

    fn add_attachment(&mut self, node: NodeId, device: Box<dyn Device>, towards: Option<Address>) {
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

    /// Assigns addresses to a node inside the network.
    pub fn add_prefix(&mut self, node: NodeId, prefix: Prefix) {
        self.prefixes.add(prefix, node);
    }

    /// Gives a node inside the network real addresses for its own connections with a peer outside.
    pub fn set_own_addresses(&mut self, own: OwnAddresses) {
        *self.encoder.addressing() = EdgeAddresses(Some(own));
    }

    /// Returns the network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the network, to complete its run.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Returns how late packets left.
    #[must_use]
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Returns counters of packets that could not enter or leave.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Returns the number of packets that entered.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Closes the devices and returns the network.
    #[must_use]
    pub fn into_network(self) -> Network {
        self.network
    }

    /// Sets the minimum interval between wake-ups under load: due events and packets from devices
    /// wait until then. A wake-up costs several times as much as a packet, so that an interval too
    /// short to affect results saves most of the cost. Zero by default.
    pub fn set_wake_interval(&mut self, wake_interval: Span) {
        self.wake_interval = wake_interval;
    }

    /// Has only the last of several acknowledgments of a flow leave that are due at once, if they
    /// were created in this network: see [`AcknowledgmentThinning`].
    pub fn thin_acknowledgments(&mut self) {
        self.thins_acknowledgments = true;
    }

    /// Processes everything that is due, and at most a burst of packets of each device. Calls `now`
    /// whenever the time matters. Returns true if more may be due at once.
    ///
    /// # Errors
    /// If a device fails.
    pub fn turn(&mut self, now: &mut dyn FnMut() -> Time) -> io::Result<bool> {
        let mut more = false;
        for position in 0..self.unpolled.len() {
            more |= self.read(self.unpolled[position], now)?;
        }
        // Devices with more packets are appended, for the next turn.
        let ready = self.ready.len();
        for position in 0..ready {
            let index = self.ready[position];
            self.attachments[usize::from(index)].ready = false;
            if self.read(index, now)? {
                self.mark_ready(index);
                more = true;
            }
        }
        self.ready.drain(..ready);
        more |= !self.network.advance(now(), EVENTS_PER_TURN);
        self.write(now)?;
        Ok(more)
    }

    /// Lists a device that may have packets to read.
    fn mark_ready(&mut self, index: u16) {
        let attachment = &mut self.attachments[usize::from(index)];
        if !std::mem::replace(&mut attachment.ready, true) {
            self.ready.push(index);
        }
    }

    /// Injects a device's packets. Returns true if it may have more.
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
            // Events before the arrival of these packets come first.
            while !self.network.advance(at, EVENTS_PER_TURN) {}
            for bytes in self.batch.packets() {
                read += 1;
                let packets = self.network.packets_mut();
                if packets.held() >= MAX_PACKETS {
                    self.refusals.count_crowded();
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
            let uncut = self.batch.take_unsplit();
            read += uncut as usize;
            self.refusals.uncut += uncut;
        }
        Ok(true)
    }

    /// Writes packets that have left the network to the devices.
    fn write(&mut self, now: &mut dyn FnMut() -> Time) -> io::Result<()> {
        let mut departures = std::mem::take(&mut self.departures);
        self.network.departures(&mut departures);
        let any = !departures.is_empty();
        if self.thins_acknowledgments && departures.len() > 1 {
            self.acknowledgment_thinning
                .thin(&mut departures, self.network.packets_mut());
        }
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
        if any {
            for attachment in &mut self.attachments {
                let lost = attachment.device.flush(now())?;
                self.refusals.not_taken += lost.refused;
                self.refusals.device_down += lost.down;
            }
        }
        Ok(())
    }

    /// Returns when to call [`turn`](Self::turn) next, unless a device becomes readable before.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        let devices = self.unpolled.iter();
        let arrivals =
            devices.filter_map(|index| self.attachments[usize::from(*index)].device.next_arrival());
        arrivals.chain(self.network.next_event()).min()
    }

    /// Runs in real time until `done` returns true, or for `limit`. Returns whether `done` did.
    ///
    /// `done` is called every 2 ms under load, and every 20 ms otherwise.
    ///
    /// # Errors
    /// If a device fails.
    pub fn run(
        &mut self,
        clock: Clock,
        limit: Span,
        mut done: impl FnMut(&mut Self, Time) -> bool,
    ) -> io::Result<bool> {
        let _priority = RealtimePriority::new(PriorityLevel::Network);
        let mut poller = self.poller()?;
        let mut next_check = clock.now();
        let end = next_check + limit;
        let mut woken = next_check;
        loop {
            let more = self.turn(&mut || clock.now())?;
            let now = clock.now();
            if now >= next_check {
                next_check = now + CHECK_INTERVAL;
                if done(self, now) {
                    return Ok(true);
                }
            }
            if now >= end {
                return Ok(false);
            }
            let next = match self.next_event() {
                _ if more => now,
                Some(next) => next.min(now + MAX_SLEEP),
                None => now + MAX_SLEEP,
            };
            let next_wake = woken + self.wake_interval;
            if now < next && now < next_wake {
                // Packets that the kernel sent in immediate response enter at once.
                if poller.wait(Span::ZERO, |index| self.mark_ready(index as u16))? {
                    continue;
                }
                poller::sleep(clock.until(next_wake.min(end)));
                woken = clock.now();
                poller.wait(Span::ZERO, |index| self.mark_ready(index as u16))?;
                continue;
            }
            let span = clock.until(next.min(end));
            poller.wait(span, |index| self.mark_ready(index as u16))?;
            if span > Span::ZERO {
                woken = clock.now();
            }
        }
    }

    /// Returns a poller for the devices that can be polled.
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
