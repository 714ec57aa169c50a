//! An IP-in-IP tunnel (RFC 2003): the entry is a framing, the exit a far end.

use bentpipe_link::{EndCtx, FarEnd, Framing, Tally};
use bentpipe_types::{Address, Bytes, PacketRef, PacketStore, Time, Tunnel};

/// Length of the outer header in bytes: IPv4 without options (RFC 2003 section 3).
pub const OUTER_HEADER: u8 = 20;

/// The entry of a tunnel.
#[derive(Debug)]
pub struct TunnelEntry {
    tunnel: Tunnel,
    encapsulated: u64,
    nested: u64,
}

impl TunnelEntry {
    /// Creates the entry of this tunnel.
    #[must_use]
    pub fn new(tunnel: Tunnel) -> Self {
        Self {
            tunnel,
            encapsulated: 0,
            nested: 0,
        }
    }

    /// Returns the number of encapsulated packets.
    #[must_use]
    pub fn encapsulated(&self) -> u64 {
        self.encapsulated
    }
}

impl Framing for TunnelEntry {
    fn transmit(&mut self, packet: PacketRef, length: Bytes, packets: &mut PacketStore) -> Bytes {
        if packets.tunnel(packet).is_some() {
            // A packet record has one outer header.
            self.nested += 1;
            return length;
        }
        packets.set_tunnel(packet, Some(self.tunnel));
        packets.get_mut(packet).header_length += OUTER_HEADER;
        self.encapsulated += 1;
        length + Bytes::new(u64::from(OUTER_HEADER))
    }

    fn adds(&self) -> Bytes {
        Bytes::new(u64::from(OUTER_HEADER))
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "encapsulated", self.encapsulated);
        each(None, "already_encapsulated", self.nested);
    }
}

/// A terminal from which a tunnel's exit accepts packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terminal {
    /// Its own address: the outer source.
    pub address: Address,
    /// Accepted inner sources, or any with `None`.
    pub behind: Option<Vec<Address>>,
}

/// Reason why a tunnel's exit rejects a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunnelRefusal {
    /// The outer source is not a terminal of this tunnel.
    Terminal,
    /// The outer destination is not this end.
    Destination,
    /// The inner source is not behind that terminal.
    Source,
}

/// Address validation at a tunnel's exit: "the expander may also validate the received IP addresses
/// to prevent spoofing" (samaraweera1999, section 2).
#[derive(Clone, Debug)]
pub struct Gate {
    local: Option<Address>,
    terminals: Vec<Terminal>,
    decapsulated: u64,
    refused: [u64; 3],
}

impl Gate {
    /// Creates the exit at `local` (any outer destination with `None`) of the tunnels from these
    /// terminals.
    #[must_use]
    pub fn new(local: Option<Address>, mut terminals: Vec<Terminal>) -> Self {
        terminals.sort_by_key(|terminal| terminal.address);
        for terminal in &mut terminals {
            if let Some(behind) = &mut terminal.behind {
                behind.sort_unstable();
            }
        }
        Self {
            local,
            terminals,
            decapsulated: 0,
            refused: [0; 3],
        }
    }

    /// Removes the outer header, if there is one, and returns whether there was. A rejected packet
    /// is counted and stays unchanged with the caller.
    ///
    /// # Errors
    /// Returns an error if the packet's addresses are not accepted.
    pub fn open(
        &mut self,
        packet: PacketRef,
        packets: &mut PacketStore,
    ) -> Result<bool, TunnelRefusal> {
        let Some(tunnel) = packets.tunnel(packet) else {
            return Ok(false);
        };
        if let Err(refusal) = self.check(tunnel, packets.get(packet).source.address) {
            self.refused[refusal as usize] += 1;
            return Err(refusal);
        }
        // RFC 3168 section 9.1.1, full functionality: a mark of the outer header is kept, because
        // both headers share the packet's ECN field.
        packets.set_tunnel(packet, None);
        let record = packets.get_mut(packet);
        record.header_length = record.header_length.saturating_sub(OUTER_HEADER);
        self.decapsulated += 1;
        Ok(true)
    }

    fn check(&self, tunnel: Tunnel, source: Address) -> Result<(), TunnelRefusal> {
        if self.local.is_some_and(|local| local != tunnel.destination) {
            return Err(TunnelRefusal::Destination);
        }
        let terminal = self
            .terminals
            .binary_search_by_key(&tunnel.source, |terminal| terminal.address)
            .map_err(|_| TunnelRefusal::Terminal)?;
        let behind = &self.terminals[terminal].behind;
        if let Some(behind) = behind
            && behind.binary_search(&source).is_err()
        {
            return Err(TunnelRefusal::Source);
        }
        Ok(())
    }

    /// Returns the number of decapsulated packets.
    #[must_use]
    pub fn decapsulated(&self) -> u64 {
        self.decapsulated
    }

    /// Returns how many packets were rejected for this reason.
    #[must_use]
    pub fn refused(&self, reason: TunnelRefusal) -> u64 {
        self.refused[reason as usize]
    }

    pub(crate) fn tally(&self, each: &mut Tally<'_>) {
        each(None, "decapsulated", self.decapsulated);
        let names = ["refused_terminal", "refused_destination", "refused_source"];
        for (name, count) in names.into_iter().zip(self.refused) {
            each(None, name, count);
        }
    }
}

/// The exit of a tunnel. Packets outside the tunnel pass unchanged.
#[derive(Debug)]
pub struct TunnelExit {
    gate: Gate,
}

impl TunnelExit {
    /// Creates the exit with this address validation.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        Self { gate }
    }

    /// Returns the address validation with its counters.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl FarEnd for TunnelExit {
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let EndCtx { packets, out, .. } = cx;
        match self.gate.open(packet, packets) {
            Ok(_) => out.push(packet),
            Err(_) => packets.release(packet),
        }
    }

    fn on_deadline(&mut self, _cx: &mut EndCtx<'_>) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn held(&self) -> usize {
        0
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.gate.tally(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Endpoint, IpVersion, Packet};

    fn packet(packets: &mut PacketStore, source: u16) -> PacketRef {
        let end = |address| Endpoint {
            address: Address(address),
            port: 80,
        };
        packets.insert(Packet::new(end(source), end(9), IpVersion::V4))
    }

    fn tunnel(source: u16, destination: u16) -> Tunnel {
        Tunnel {
            source: Address(source),
            destination: Address(destination),
        }
    }

    fn exit() -> TunnelExit {
        let terminal = |address, behind: Option<Vec<u16>>| Terminal {
            address: Address(address),
            behind: behind.map(|b| b.into_iter().map(Address).collect()),
        };
        TunnelExit::new(Gate::new(
            Some(Address(100)),
            vec![terminal(12, Some(vec![3, 1])), terminal(11, None)],
        ))
    }

    #[test]
    fn packets_are_unchanged_after_encapsulation_and_decapsulation() {
        let mut packets = PacketStore::default();
        let reference = packet(&mut packets, 1);
        let before = *packets.get(reference);
        let mut entry = TunnelEntry::new(tunnel(12, 100));
        let length = entry.transmit(reference, Bytes::new(40), &mut packets);
        assert_eq!(length, Bytes::new(60));
        assert_eq!(packets.get(reference).length(), Bytes::new(60));
        let mut out = Vec::new();
        exit().on_arrival(
            reference,
            &mut EndCtx::new(Time::ZERO, &mut packets, &mut out),
        );
        assert_eq!(out, [reference]);
        let after = packets.get(reference);
        assert_eq!(after.length(), before.length());
        assert_eq!(after.source, before.source); // the server sees the inner source
        assert_eq!(packets.tunnel(reference), None);
    }

    #[test]
    fn packets_of_other_tunnels_are_refused_by_reason() {
        let mut packets = PacketStore::default();
        let mut exit = exit();
        let mut out = Vec::new();
        for (source, from, to) in [
            (1, 13, 100), // no terminal of ours
            (1, 12, 101), // not to us
            (2, 12, 100), // not behind that terminal
            (3, 12, 100),
            (2, 11, 100),
        ] {
            let reference = packet(&mut packets, source);
            TunnelEntry::new(tunnel(from, to)).transmit(reference, Bytes::new(40), &mut packets);
            exit.on_arrival(
                reference,
                &mut EndCtx::new(Time::ZERO, &mut packets, &mut out),
            );
        }
        assert_eq!(out.len(), 2);
        assert_eq!(packets.held(), 2);
        for reason in [
            TunnelRefusal::Terminal,
            TunnelRefusal::Destination,
            TunnelRefusal::Source,
        ] {
            assert_eq!(exit.gate().refused(reason), 1, "{reason:?}");
        }
        assert_eq!(exit.gate().decapsulated(), 2);
    }

    #[test]
    fn packets_outside_a_tunnel_pass_unchanged() {
        let mut packets = PacketStore::default();
        let reference = packet(&mut packets, 5);
        let mut out = Vec::new();
        exit().on_arrival(
            reference,
            &mut EndCtx::new(Time::ZERO, &mut packets, &mut out),
        );
        assert_eq!(out, [reference]);
    }
}
