//! UDP datagrams of applications.

use bentpipe_types::{
    ECHO_HEADER, Echo, Endpoint, IpVersion, Packet, PacketRef, PacketStore, Seq, Time, filler,
};

/// A datagram, as seen by its application.
///
/// A simulated one has no content; its data are in the packet record. On a wire, the first 16 bytes
/// of the payload contain them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Payload length in bytes.
    pub length: u16,
    /// Sequence number assigned by the sender.
    pub number: u64,
    /// Sending time.
    pub sent: Time,
}

/// IANA protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// Length of number and time: two 64-bit words, big-endian.
const HEADER: usize = 16;

impl Datagram {
    /// Minimum payload that can contain number and time.
    pub const LEAST: u16 = HEADER as u16;

    /// Writes number and time to the beginning of a payload, if they fit.
    pub fn label(&self, payload: &mut [u8]) {
        if let Some((header, _)) = payload.split_first_chunk_mut::<HEADER>() {
            header[..8].copy_from_slice(&self.number.to_be_bytes());
            header[8..].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        }
    }

    /// Reads a received payload, or returns `None` if it is too short.
    #[must_use]
    pub fn of_payload(payload: &[u8]) -> Option<Self> {
        let (header, _) = payload.split_first_chunk::<HEADER>()?;
        let mut datagram = Self {
            length: u16::try_from(payload.len()).ok()?,
            number: 0,
            sent: Time::ZERO,
        };
        datagram.read_label(header);
        Some(datagram)
    }

    fn read_label(&mut self, header: &[u8; HEADER]) {
        let word = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[from..from + 8]);
            u64::from_be_bytes(bytes)
        };
        self.number = word(0);
        self.sent = Time::from_nanos(word(8));
    }

    /// Stores the datagram as a packet, optionally with its payload.
    pub(crate) fn insert(
        self,
        source: Endpoint,
        destination: Endpoint,
        version: IpVersion,
        with_bytes: bool,
        packets: &mut PacketStore,
    ) -> PacketRef {
        let mut record = Packet::datagram(source, destination, version, UDP);
        record.payload_length = self.length;
        self.write(&mut record);
        let packet = packets.insert(record);
        if with_bytes {
            packets.set_payload(packet, |payload| {
                filler::fill(0, payload);
                self.label(payload);
            });
        }
        packet
    }

    /// Stores the datagram as an ICMP echo message.
    pub(crate) fn insert_echo(
        self,
        echo: Echo,
        source: Endpoint,
        destination: Endpoint,
        version: IpVersion,
        packets: &mut PacketStore,
    ) -> PacketRef {
        let mut record = Packet::echo(source, destination, version, echo);
        record.payload_length = ECHO_HEADER.saturating_add(self.length);
        self.write(&mut record);
        packets.insert(record)
    }

    fn write(self, record: &mut Packet) {
        let sent = self.sent.as_nanos();
        record.payload_offset = self.number;
        // A datagram does not use the sequence number fields.
        record.sequence = Seq::new((sent >> 32) as u32);
        record.acknowledgment = Seq::new(sent as u32);
    }

    /// Reads a packet.
    pub(crate) fn read(packet: PacketRef, packets: &PacketStore) -> Self {
        let record = packets.get(packet);
        let sent = u64::from(record.sequence.get()) << 32 | u64::from(record.acknowledgment.get());
        let header = record.echo_kind().map_or(0, |_| ECHO_HEADER);
        let mut datagram = Self {
            length: record.payload_length.saturating_sub(header),
            number: record.payload_offset,
            sent: Time::from_nanos(sent),
        };
        // A received packet has the data only in its bytes.
        if packets.bytes(packet).is_some()
            && let Some((header, _)) = packets
                .payload(packet)
                .and_then(|payload| payload.split_first_chunk::<HEADER>())
        {
            datagram.read_label(header);
        }
        datagram
    }
}
