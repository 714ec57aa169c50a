//! Output of received packets: the original bytes, patched where the record differs.
//!
//! A packet that no node changed leaves bit for bit as it came, except for its hop count: unknown
//! options, DSCP, flow label, identification and reserved bits survive. Changes are written over
//! the bytes, and checksums are updated by the difference (RFC 1624), so that they still cover the
//! payload from end to end.

use std::net::IpAddr;

use bentpipe_types::{Flags, Packet, PacketRef, PacketStore};

use crate::checksum::{update, update_u16};
use crate::error::EncodeError;
use crate::options::{MAXIMUM_OPTIONS_LENGTH, TcpOptions};
use crate::{ip, ipv6, tcp};

const ICMP_V6: u8 = 58;

/// Appends the packet to `out`, based on its original bytes.
pub(crate) fn rewrite(
    packets: &PacketStore,
    reference: PacketRef,
    original: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let record = packets.get(reference);
    out.extend_from_slice(original);
    let v4 = original.first().is_some_and(|first| first >> 4 == 4);
    let ip_length = if v4 {
        usize::from(original[0] & 0x0f) * 4
    } else {
        ipv6::LENGTH
    };
    if record.is_tcp() {
        rewrite_segment(packets, reference, original, ip_length, start, out)?;
    }
    let bytes = &mut out[start..];
    if v4 {
        rewrite_v4(packets, reference, record, bytes);
    } else {
        rewrite_v6(packets, reference, record, bytes);
    }
    if let Some(addresses) = packets.ip(reference) {
        rewrite_addresses(addresses, original, bytes, ip_length, v4);
    }
    Ok(())
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// Sets a 16-bit word of the IPv4 header and updates the checksum.
fn set_v4(bytes: &mut [u8], at: usize, new: u16) {
    let old = word(bytes, at);
    if old != new {
        let sum = update_u16(word(bytes, 10), old, new);
        put(bytes, 10, sum);
        put(bytes, at, new);
    }
}

fn rewrite_v4(packets: &PacketStore, reference: PacketRef, record: &Packet, bytes: &mut [u8]) {
    let first = word(bytes, 0);
    set_v4(bytes, 0, first & !3 | record.ecn() as u16);
    let length = bytes.len() as u16;
    set_v4(bytes, 2, length);
    let hops = u16::from(packets.hops(reference));
    let hop_limit = word(bytes, 8) >> 8;
    let protocol = word(bytes, 8) & 0xff;
    set_v4(bytes, 8, hop_limit.saturating_sub(hops) << 8 | protocol);
}

fn rewrite_v6(packets: &PacketStore, reference: PacketRef, record: &Packet, bytes: &mut [u8]) {
    bytes[1] = bytes[1] & !0x30 | (record.ecn() as u8) << 4;
    let length = (bytes.len() - ipv6::LENGTH) as u16;
    put(bytes, 4, length);
    bytes[7] = bytes[7].saturating_sub(packets.hops(reference));
}

/// Returns the offset of the transport checksum, which covers the addresses as well.
fn transport_checksum(original: &[u8], record: u8, at: usize) -> Option<usize> {
    let at = match record {
        tcp::PROTOCOL => at + 16,
        // A UDP checksum of 0 means none (RFC 768).
        ip::UDP if original.get(at + 6..at + 8) != Some(&[0, 0]) => at + 6,
        ICMP_V6 => at + 2,
        _ => return None,
    };
    Some(at)
}

fn rewrite_addresses(
    addresses: (IpAddr, IpAddr),
    original: &[u8],
    bytes: &mut [u8],
    ip_length: usize,
    v4: bool,
) {
    let mut new = [0; 32];
    let (range, length) = match addresses {
        (IpAddr::V4(source), IpAddr::V4(destination)) if v4 => {
            new[..4].copy_from_slice(&source.octets());
            new[4..8].copy_from_slice(&destination.octets());
            (12..20, 8)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) if !v4 => {
            new[..16].copy_from_slice(&source.octets());
            new[16..].copy_from_slice(&destination.octets());
            (8..40, 32)
        }
        _ => return,
    };
    let (old, new) = (&original[range.clone()], &new[..length]);
    if old == new {
        return;
    }
    if v4 {
        let sum = update(word(bytes, 10), old, new);
        put(bytes, 10, sum);
    }
    // Only in a complete packet is the transport header in a known position.
    if let Ok(packet) = ip::parse_ip(original)
        && !packet.fragment
        && packet.carried_at == ip_length
        && let Some(at) = transport_checksum(original, packet.protocol, ip_length)
        && at + 2 <= bytes.len()
    {
        let mut sum = update(word(bytes, at), old, new);
        if packet.protocol == ip::UDP && sum == 0 {
            sum = 0xffff;
        }
        put(bytes, at, sum);
    }
    bytes[range].copy_from_slice(new);
}

/// Applies the record to the segment in `out[start..]`, a copy of `original`.
fn rewrite_segment(
    packets: &PacketStore,
    reference: PacketRef,
    original: &[u8],
    ip_length: usize,
    start: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let record = packets.get(reference);
    let tcp_length = usize::from(original[ip_length + 12] >> 4) * 4;
    let payload_at = ip_length + tcp_length;
    let old = &original[ip_length..payload_at];
    let mut header = [0; tcp::LENGTH + MAXIMUM_OPTIONS_LENGTH];
    header[..old.len()].copy_from_slice(old);
    let mut length = old.len();
    put(&mut header, 0, record.source.port);
    put(&mut header, 2, record.destination.port);
    header[4..8].copy_from_slice(&record.sequence.get().to_be_bytes());
    header[8..12].copy_from_slice(&record.acknowledgment.get().to_be_bytes());
    header[13] = record.flags.0;
    put(&mut header, 14, record.window);
    let mut options = TcpOptions::of(packets, reference);
    if !record.flags.has(Flags::SYN) {
        options.syn = Default::default();
    }
    let mut before = TcpOptions::read(&old[tcp::LENGTH..], 0).unwrap_or_default();
    if !Flags(old[13]).has(Flags::SYN) {
        before.syn = Default::default();
    }
    if before != options {
        length = tcp::LENGTH + replace_options(&old[tcp::LENGTH..], &options, &mut header)?;
        header[12] = (length as u8 / 4) << 4 | header[12] & 0x0f;
    }
    let new = &mut header[..length];
    let payload = usize::from(record.payload_length);
    let came = original.len() - payload_at;
    let cut = packets.cut_in_front(reference);
    if cut > 0 && Flags(new[13]).has(Flags::URG) {
        // RFC 9293 section 3.8.5: the urgent pointer is relative to the segment's first byte.
        let pointer = word(new, 18).saturating_sub(cut);
        put(new, 18, pointer);
        if pointer == 0 {
            new[13] &= !Flags::URG.0;
        }
    }
    if new == old && payload == came {
        return Ok(());
    }
    out.truncate(start + ip_length);
    let at = out.len();
    if payload == came {
        let mut sum = update(word(old, 16), &old[..16], &new[..16]);
        sum = update(sum, &old[18..], &new[18..]);
        // The pseudo-header contains the segment's length (RFC 9293 section 3.1).
        let (was, is) = ((old.len() + came) as u16, (new.len() + came) as u16);
        put(new, 16, update_u16(sum, was, is));
        out.extend_from_slice(new);
        out.extend_from_slice(&original[payload_at..]);
        return Ok(());
    }
    // The payload was cut at either end: the checksum is computed anew.
    let first = payload_at + usize::from(cut);
    let kept = original
        .get(first..first + payload)
        .ok_or(EncodeError::TooLong { length: payload })?;
    put(new, 16, 0);
    out.extend_from_slice(new);
    out.extend_from_slice(kept);
    let (source, destination) = addresses(original);
    tcp::set_tcp_checksum(&mut out[at..], source, destination);
    Ok(())
}

fn addresses(original: &[u8]) -> (IpAddr, IpAddr) {
    match ip::parse_ip(original) {
        Ok(packet) => (packet.source, packet.destination),
        // Unreachable: what was stored was parsed.
        Err(_) => (IpAddr::from([0; 4]), IpAddr::from([0; 4])),
    }
}

/// Writes the known options behind the unknown ones, which are kept. Returns the length of all
/// options.
fn replace_options(
    old: &[u8],
    options: &TcpOptions,
    header: &mut [u8; tcp::LENGTH + MAXIMUM_OPTIONS_LENGTH],
) -> Result<usize, EncodeError> {
    let mut known = Vec::with_capacity(MAXIMUM_OPTIONS_LENGTH);
    options.write(&mut known);
    let mut all = Vec::with_capacity(MAXIMUM_OPTIONS_LENGTH);
    TcpOptions::unknown(old, |option| all.extend_from_slice(option));
    // Padded with NOPs, as between options elsewhere.
    all.resize(all.len().next_multiple_of(4), 1);
    if all.len() + known.len() > MAXIMUM_OPTIONS_LENGTH {
        // No room for the unknown options: the known ones take precedence.
        all.clear();
    }
    all.extend_from_slice(&known);
    if all.len() > MAXIMUM_OPTIONS_LENGTH {
        return Err(EncodeError::OptionsTooLong { length: all.len() });
    }
    header[tcp::LENGTH..tcp::LENGTH + all.len()].copy_from_slice(&all);
    Ok(all.len())
}

#[cfg(test)]
mod tests;
