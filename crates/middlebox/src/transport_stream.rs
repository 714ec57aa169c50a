//! IP in the cells of an MPEG-2 transport stream: MPE and ULE.

use bentpipe_link::{Framing, Tally};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

/// A transport stream packet (ISO/IEC 13818-1, clause 2.4.3.2).
const CELL: u64 = 188;
const CELL_HEADER: u64 = 4;
/// Bytes of a cell for sections or SNDUs, pointers included.
const CELL_PAYLOAD: u64 = CELL - CELL_HEADER;
/// Pointer field (MPE) or payload pointer (ULE) of a cell in which a section or an SNDU begins.
const POINTER: u64 = 1;

/// How packets are encapsulated before they are cut into cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encapsulation {
    /// Multiprotocol encapsulation: a datagram section without LLC/SNAP (EN 301 192, clause 7.1).
    Mpe,
    /// Unidirectional lightweight encapsulation with a destination address (RFC 4326 section 4).
    Ule,
}

impl Encapsulation {
    /// Returns the bytes around a packet: header and CRC-32.
    #[must_use]
    pub const fn overhead(self) -> u64 {
        match self {
            // Table 3: table and section length (3), address bytes 6 and 5 (2), flags and section
            // numbers (3), address bytes 4 to 1 (4), CRC-32 (4).
            Self::Mpe => 3 + 2 + 3 + 4 + 4,
            // Length (2), type (2), destination address (6), CRC-32 (4).
            Self::Ule => 2 + 2 + 6 + 4,
        }
    }

    /// Returns the fewest bytes of a cell in which a section or an SNDU may begin. A length field
    /// of ULE is not split between cells (RFC 4326 section 6).
    const fn least_start(self) -> u64 {
        match self {
            Self::Mpe => 1,
            Self::Ule => 2,
        }
    }

    /// Returns the longest packet: a section has at most 4096 bytes (EN 301 192, clause 7.1), and
    /// an SNDU's length field has 15 bits, of which 0x7FFF is the end indicator (RFC 4326 section
    /// 4.3).
    #[must_use]
    pub const fn longest_packet(self) -> u64 {
        match self {
            Self::Mpe => 4096 - self.overhead(),
            Self::Ule => 0x7FFE - 6 - 4,
        }
    }
}

/// The open cell: its used bytes, header included, and whether it has a pointer.
#[derive(Clone, Copy, Debug)]
struct OpenCell {
    used: u64,
    has_pointer: bool,
}

/// Framing in cells of 188 bytes.
///
/// With packing, a packet begins in the cell in which the packet before it ends, if it is queued
/// when the transmission of that packet begins (a packing threshold of 0). Otherwise the rest of
/// the cell is padded at once. Without packing, each packet begins a cell. A packet arrives with
/// its own last byte, padding included; it does not wait for the next packet in the same cell.
#[derive(Clone, Copy, Debug)]
pub struct TransportStream {
    encapsulation: Encapsulation,
    packing: bool,
    open: Option<OpenCell>,
    padding: u64,
}

impl TransportStream {
    /// Creates a framing in which no cell is open.
    #[must_use]
    pub const fn new(encapsulation: Encapsulation, packing: bool) -> Self {
        Self {
            encapsulation,
            packing,
            open: None,
            padding: 0,
        }
    }

    /// Pads the open cell. Returns the padding.
    fn pad(&mut self) -> u64 {
        let padding = self.open.take().map_or(0, |open| CELL - open.used);
        self.padding += padding;
        padding
    }

    /// Returns the bytes that open a place for a section or an SNDU: a pointer in the open cell, or
    /// the rest of that cell and the header of the next one.
    fn begin(&mut self) -> (u64, OpenCell) {
        if let Some(open) = self.open {
            let pointer = if open.has_pointer { 0 } else { POINTER };
            if open.used + pointer + self.encapsulation.least_start() <= CELL {
                let used = open.used + pointer;
                let has_pointer = true;
                return (pointer, OpenCell { used, has_pointer });
            }
        }
        let used = CELL_HEADER + POINTER;
        let has_pointer = true;
        (self.pad() + used, OpenCell { used, has_pointer })
    }
}

impl Framing for TransportStream {
    fn transmit(&mut self, _packet: PacketRef, length: Bytes, _packets: &mut PacketStore) -> Bytes {
        let (mut bytes, mut open) = self.begin();
        let unit = length.get() + self.encapsulation.overhead();
        bytes += unit;
        let rest = unit.saturating_sub(CELL - open.used);
        open.used += unit - rest;
        if rest > 0 {
            let cells = rest.div_ceil(CELL_PAYLOAD);
            bytes += cells * CELL_HEADER;
            open = OpenCell {
                used: CELL_HEADER + rest - (cells - 1) * CELL_PAYLOAD,
                has_pointer: false,
            };
        }
        self.open = Some(open).filter(|open| open.used < CELL);
        if !self.packing {
            bytes += self.pad();
        }
        Bytes::new(bytes)
    }

    fn complete(&mut self, length: Bytes) -> Bytes {
        length + Bytes::new(self.pad())
    }

    fn backlog(&self, packets: u64, bytes: Bytes) -> Bytes {
        // A cell is at most almost empty behind each packet without packing, and one with it.
        let units = bytes.get() + packets * (self.encapsulation.overhead() + POINTER);
        let unused = if self.packing {
            packets * (self.encapsulation.least_start() - 1) + CELL_PAYLOAD
        } else {
            packets * (CELL_PAYLOAD - 1)
        };
        Bytes::new((units + unused).div_ceil(CELL_PAYLOAD) * CELL)
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "cell_padding_bytes", self.padding);
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::{Endpoint, IpVersion, Packet};
    use proptest::prelude::*;

    use super::*;

    /// Sends packets of these lengths, each queued in time or not for the next to follow directly.
    fn sent(stream: &mut TransportStream, packets: &[(u64, bool)]) -> Vec<u64> {
        let mut store = PacketStore::default();
        let end = Endpoint::default();
        let packet = store.insert(Packet::new(end, end, IpVersion::V4));
        let send = |&(length, followed): &(u64, bool)| {
            let length = Bytes::new(length);
            let framed = stream.transmit(packet, length, &mut store);
            if followed {
                framed.get()
            } else {
                stream.complete(framed).get()
            }
        };
        packets.iter().map(send).collect()
    }

    const BOTH: [Encapsulation; 2] = [Encapsulation::Mpe, Encapsulation::Ule];

    #[test]
    fn padded_packets_take_whole_cells() {
        // 184 bytes of a cell, a pointer in the first: an ACK takes one cell, a packet of 1500
        // bytes ceil(1517 / 184) = 9 with MPE and ceil(1515 / 184) = 9 with ULE.
        for (encapsulation, length, cells) in [
            (Encapsulation::Mpe, 40, 1),
            (Encapsulation::Mpe, 167, 1),
            (Encapsulation::Mpe, 168, 2),
            (Encapsulation::Ule, 169, 1),
            (Encapsulation::Ule, 170, 2),
            (Encapsulation::Mpe, 1500, 9),
            (Encapsulation::Ule, 1500, 9),
        ] {
            let mut stream = TransportStream::new(encapsulation, false);
            for followed in [true, false] {
                let bytes = sent(&mut stream, &[(length, followed)]);
                assert_eq!(bytes, [cells * 188], "{encapsulation:?} {length}");
            }
        }
    }

    /// A cell takes 184 bytes, one of them a pointer if a packet begins in it. With 1500 bytes in a
    /// row, each SNDU of 1514 bytes begins in one cell: 1515 bytes of cells each.
    #[test]
    fn packed_packets_share_cells() {
        for (encapsulation, unit) in [(Encapsulation::Mpe, 1516), (Encapsulation::Ule, 1514)] {
            let mut stream = TransportStream::new(encapsulation, true);
            let count = 184_000_u64;
            let packets = vec![(1500, true); count as usize];
            let mut bytes: u64 = sent(&mut stream, &packets).iter().sum();
            bytes = stream.complete(Bytes::new(bytes)).get();
            let in_cells = count * (unit + POINTER) + stream.padding;
            assert_eq!(bytes * CELL_PAYLOAD, in_cells * CELL, "{encapsulation:?}");
            // Padding: the last cell, and the places at the end of a cell in which no packet may
            // begin.
            assert!(stream.padding < count / 50, "{}", stream.padding);
        }
    }

    #[test]
    fn an_sndu_does_not_begin_in_the_last_byte_of_a_cell() {
        // 4 + 1 + 14 + 168 = 187: one byte is left, which ULE pads and MPE uses.
        let mut stream = TransportStream::new(Encapsulation::Ule, true);
        assert_eq!(sent(&mut stream, &[(168, true)]), [187]);
        assert_eq!(sent(&mut stream, &[(40, true)]), [1 + 5 + 54]);
        let mut stream = TransportStream::new(Encapsulation::Mpe, true);
        assert_eq!(sent(&mut stream, &[(166, true)]), [187]);
        assert_eq!(sent(&mut stream, &[(40, true)]), [56 + 4]);
        // A cell that continues an SNDU gets a pointer for the next: 30 bytes are in the second
        // cell, then the pointer.
        let mut stream = TransportStream::new(Encapsulation::Ule, true);
        assert_eq!(sent(&mut stream, &[(183 + 30 - 14, true)]), [188 + 34]);
        assert_eq!(sent(&mut stream, &[(40, true)]), [1 + 54]);
        assert_eq!(sent(&mut stream, &[(40, false)]), [188 - 34 - 55]);
    }

    #[test]
    fn longest_packets_are_those_of_the_standards() {
        assert_eq!(Encapsulation::Mpe.longest_packet(), 4080);
        assert_eq!(Encapsulation::Ule.longest_packet(), 32_756);
    }

    proptest! {
        /// Whatever is sent, cells are whole at the end, and each packet takes at least its length
        /// and at most what a terminal requests for it.
        #[test]
        fn cells_are_whole_and_no_packet_is_shortened(
            ule in any::<bool>(),
            packing in any::<bool>(),
            mut packets in prop::collection::vec((20_u64..4_080, any::<bool>()), 1..60),
        ) {
            let encapsulation = BOTH[usize::from(ule)];
            let mut stream = TransportStream::new(encapsulation, packing);
            packets.last_mut().expect("one at least").1 = false;
            let framed = sent(&mut stream, &packets);
            for ((length, _), framed) in packets.iter().zip(&framed) {
                prop_assert!(*framed >= length + encapsulation.overhead());
            }
            let sum: u64 = framed.iter().sum();
            prop_assert_eq!(sum % CELL, 0);
            let payload: u64 = packets.iter().map(|(length, _)| length).sum();
            // Each pause pads a cell.
            let pauses = packets.iter().filter(|(_, followed)| !followed).count() as u64;
            let request = stream.backlog(packets.len() as u64, Bytes::new(payload)).get();
            prop_assert!(sum <= request + (pauses - 1) * CELL);
        }

        /// A longer packet takes at least as many bytes, in whatever cell it begins.
        #[test]
        fn bytes_grow_with_the_packet(
            ule in any::<bool>(),
            packing in any::<bool>(),
            before in 20_u64..2_000,
            length in 20_u64..4_080,
            more in 1_u64..500,
            followed in any::<bool>(),
        ) {
            let mut stream = TransportStream::new(BOTH[usize::from(ule)], packing);
            sent(&mut stream, &[(before, true)]);
            let shorter = sent(&mut stream.clone(), &[(length, followed)]);
            let longer = sent(&mut stream, &[(length + more, followed)]);
            prop_assert!(shorter <= longer);
        }

        /// Packing never takes more cells than padding.
        #[test]
        fn packing_saves_cells(
            ule in any::<bool>(),
            lengths in prop::collection::vec(20_u64..4_080, 1..60),
        ) {
            let encapsulation = BOTH[usize::from(ule)];
            let mut packets: Vec<_> = lengths.iter().map(|length| (*length, true)).collect();
            packets.last_mut().expect("one at least").1 = false;
            let total = |packing| -> u64 {
                sent(&mut TransportStream::new(encapsulation, packing), &packets).iter().sum()
            };
            prop_assert!(total(true) <= total(false));
        }
    }
}
