//! The compressor (RFC 1144 section 3.2.3).

use super::format::{
    ACK, FIN_SYN_RST, Headers, NEW_ACKNOWLEDGMENT, NEW_CONNECTION, NEW_IDENTIFICATION,
    NEW_SEQUENCE, NEW_WINDOW, PSH, PUSH, PacketType, SPECIAL_DATA, SPECIAL_ECHO, SlotsError, URG,
    URGENT,
};
use crate::tcp;

#[derive(Debug)]
struct Slot {
    headers: Headers,
    used: u64,
}

/// The sending end of a link with compressed headers: a fixed number of connections, of which the
/// least recently used is replaced by a new one.
#[derive(Debug)]
pub struct Compressor {
    capacity: usize,
    slots: Vec<Slot>,
    /// Connection of the previous packet; its number can be omitted.
    last: Option<u8>,
    clock: u64,
    omit_connection: bool,
}

/// Encoded changes of one packet.
#[derive(Default)]
struct Changes {
    mask: u8,
    bytes: [u8; 15],
    length: usize,
}

impl Changes {
    /// Appends a change: one byte for 1 to 255, otherwise zero and two bytes (section 3.2.2).
    fn push(&mut self, bit: u8, value: u16) {
        self.mask |= bit;
        let [high, low] = value.to_be_bytes();
        let encoded = [0, high, low];
        let encoded = if high == 0 && low != 0 {
            &encoded[2..]
        } else {
            &encoded[..]
        };
        self.bytes[self.length..][..encoded.len()].copy_from_slice(encoded);
        self.length += encoded.len();
    }

    fn replace(&mut self, mask: u8) {
        *self = Self {
            mask,
            ..Self::default()
        };
    }
}

impl Compressor {
    /// Creates a compressor for `slots` connections, 1 to 256 (the RFC uses 16). With
    /// `omit_connection`, a packet of the same connection as the previous one omits the connection
    /// number; only for links that report every loss (PPP: RFC 1332 section 4, "Comp-Slot-Id").
    ///
    /// # Errors
    /// Returns an error if the format cannot number so many connections.
    pub fn new(slots: usize, omit_connection: bool) -> Result<Self, SlotsError> {
        if !(1..=256).contains(&slots) {
            return Err(SlotsError { slots });
        }
        Ok(Self {
            capacity: slots,
            slots: Vec::with_capacity(slots),
            last: None,
            clock: 0,
            omit_connection,
        })
    }

    /// Compresses a packet into `frame`, payload included, replacing its content.
    pub fn compress(&mut self, packet: &[u8], frame: &mut Vec<u8>) -> PacketType {
        let (packet_type, consumed) = self.compress_headers(packet, frame);
        frame.extend_from_slice(&packet[consumed..]);
        packet_type
    }

    /// Compresses the headers of a packet; `packet` need not contain more. Also returns how many
    /// bytes of it `frame` replaces; the rest follows the frame.
    pub fn compress_headers(&mut self, packet: &[u8], frame: &mut Vec<u8>) -> (PacketType, usize) {
        frame.clear();
        let Some(headers) = Headers::read(packet, Some(tcp::PROTOCOL))
            .filter(|headers| headers.flags() & (FIN_SYN_RST | ACK) == ACK)
        else {
            return (PacketType::Ip, 0);
        };
        let length = headers.length();
        self.clock += 1;
        let Some(number) = self.find(&headers) else {
            let number = self.make_room(headers);
            self.write_uncompressed(number, frame);
            return (PacketType::UncompressedTcp, length);
        };
        let slot = &mut self.slots[usize::from(number)];
        slot.used = self.clock;
        let old = std::mem::replace(&mut slot.headers, headers);
        let Some(changes) = changes(&headers, &old) else {
            self.write_uncompressed(number, frame);
            return (PacketType::UncompressedTcp, length);
        };
        let omit = self.omit_connection && self.last == Some(number);
        if omit {
            frame.push(changes.mask);
        } else {
            frame.extend_from_slice(&[changes.mask | NEW_CONNECTION, number]);
        }
        frame.extend_from_slice(&headers.tcp_checksum().to_be_bytes());
        frame.extend_from_slice(&changes.bytes[..changes.length]);
        self.last = Some(number);
        (PacketType::CompressedTcp, length)
    }

    fn find(&self, headers: &Headers) -> Option<u8> {
        if let Some(last) = self.last
            && self.slots[usize::from(last)]
                .headers
                .is_connection_of(headers)
        {
            return Some(last);
        }
        // A linear search, as in the RFC: there are few.
        self.slots
            .iter()
            .position(|slot| slot.headers.is_connection_of(headers))
            .map(|at| at as u8)
    }

    fn make_room(&mut self, headers: Headers) -> u8 {
        let slot = Slot {
            headers,
            used: self.clock,
        };
        if self.slots.len() < self.capacity {
            self.slots.push(slot);
            return (self.slots.len() - 1) as u8;
        }
        let oldest = (0..self.slots.len())
            .min_by_key(|&at| self.slots[at].used)
            .unwrap_or(0);
        self.slots[oldest] = slot;
        oldest as u8
    }

    fn write_uncompressed(&mut self, number: u8, frame: &mut Vec<u8>) {
        let mut headers = self.slots[usize::from(number)].headers;
        headers.set_protocol(number);
        frame.extend_from_slice(headers.bytes());
        self.last = Some(number);
    }
}

/// Returns the changed fields, or `None` if the packet must be sent uncompressed.
fn changes(new: &Headers, old: &Headers) -> Option<Changes> {
    if !new.is_compressible_after(old) {
        return None;
    }
    let mut changes = Changes::default();
    if new.flags() & URG != 0 {
        changes.push(URGENT, new.urgent_pointer());
    } else if new.urgent_pointer() != old.urgent_pointer() {
        return None;
    }
    let window = new.window().wrapping_sub(old.window());
    if window != 0 {
        changes.push(NEW_WINDOW, window);
    }
    // A number that decreases, or increases by more than 16 bits, looks like a retransmission.
    let acknowledged = new.acknowledgment().wrapping_sub(old.acknowledgment());
    if acknowledged != 0 {
        changes.push(NEW_ACKNOWLEDGMENT, u16::try_from(acknowledged).ok()?);
    }
    let sent = new.sequence().wrapping_sub(old.sequence());
    if sent != 0 {
        changes.push(NEW_SEQUENCE, u16::try_from(sent).ok()?);
    }
    let last_payload = u32::from(old.payload());
    match changes.mask {
        // Data after an acknowledgment with the same numbers. Anything else without changes is a
        // retransmission or a window probe: "Send it uncompressed in case the other side missed the
        // compressed version" (appendix A.2).
        0 if new.payload() > 0 && old.payload() == 0 => (),
        // Masks that encode special cases cannot be used for ordinary changes.
        0 | SPECIAL_ECHO | SPECIAL_DATA => return None,
        mask if mask == NEW_SEQUENCE | NEW_ACKNOWLEDGMENT
            && sent == acknowledged
            && sent == last_payload =>
        {
            changes.replace(SPECIAL_ECHO);
        }
        NEW_SEQUENCE if sent == last_payload => changes.replace(SPECIAL_DATA),
        _ => (),
    }
    let identification = new.identification().wrapping_sub(old.identification());
    if identification != 1 {
        changes.push(NEW_IDENTIFICATION, identification);
    }
    if new.flags() & PSH != 0 {
        changes.mask |= PUSH;
    }
    Some(changes)
}
