//! TUN devices for forwarded packets.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use bentpipe_types::Time;
use bentpipe_wire::checksum::update_u16;

use super::old_connections::OldConnections;
use crate::Tun;
use crate::device::{Batch, Device, Lost, Sent};

/// A TUN device that receives packets the kernel forwards, and returns packets to be forwarded on.
/// The kernel decrements the hop limit each time, and a simulated router does as well; this device
/// corrects that, so that the machine appears as one hop.
#[derive(Debug)]
pub(super) struct DivertedDevice {
    tun: Tun,
    /// Whether the network between the two devices decrements the hop limit.
    network_is_hop: bool,
    /// Connections of a killed process, whose packets go no further.
    old: Option<Arc<Mutex<OldConnections>>>,
}

impl DivertedDevice {
    pub(super) fn new(
        tun: Tun,
        network_is_hop: bool,
        old: Option<Arc<Mutex<OldConnections>>>,
    ) -> Self {
        Self {
            tun,
            network_is_hop,
            old,
        }
    }
}

impl Device for DivertedDevice {
    fn receive(&mut self, _now: Time, batch: &mut Batch) -> io::Result<bool> {
        let more = self.tun.receive_fairly(batch)?;
        if more {
            // Only this thread uses the list.
            let mut old = self.old.as_ref().and_then(|old| old.lock().ok());
            batch.retain(|packet| {
                if !is_forwarded(packet) || old.as_mut().is_some_and(|old| old.takes(packet)) {
                    return false;
                }
                if self.network_is_hop {
                    increment_hop_limit(packet);
                }
                true
            });
        }
        Ok(more)
    }

    fn send(&mut self, _now: Time, packet: &[u8]) -> io::Result<Sent> {
        self.tun.queue(packet);
        Ok(Sent::Taken)
    }

    fn flush(&mut self, _now: Time) -> io::Result<Lost> {
        self.tun.write_queued(increment_hop_limit)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.tun.descriptor()
    }
}

/// Whether a packet was forwarded. The kernel also sends its own packets on a new interface
/// (multicast listener reports, router solicitations); these are for neighbours only.
fn is_forwarded(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(16).is_none_or(|first| *first < 224),
        // Multicast ff00::/8 and link-local fe80::/10.
        Some(6) => !matches!(packet.get(24..26), Some([0xff, _] | [0xfe, 0x80..=0xbf])),
        _ => true,
    }
}

/// Adds one to the TTL (RFC 791 section 3.1) or hop limit (RFC 8200 section 3) and updates IPv4's
/// header checksum (RFC 1624 section 3).
fn increment_hop_limit(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.get_mut(..20) else {
                return;
            };
            let word = |at: usize, header: &[u8]| u16::from_be_bytes([header[at], header[at + 1]]);
            let before = word(8, header);
            header[8] = header[8].saturating_add(1);
            let sum = update_u16(word(10, header), before, word(8, header));
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) => {
            if let Some(hops) = packet.get_mut(7) {
                *hops = hops.saturating_add(1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_wire::checksum::checksum;

    fn header(hops: u8, to: [u8; 4]) -> Vec<u8> {
        let mut header = vec![
            0x45, 0, 0, 20, 0x12, 0x34, 0x40, 0, hops, 17, 0, 0, 192, 0, 2, 1,
        ];
        header.extend(to);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    #[test]
    fn incrementing_the_hop_limit_updates_the_checksum() {
        let to = [198, 51, 100, 7];
        for hops in 1..=254 {
            let mut packet = header(hops, to);
            increment_hop_limit(&mut packet);
            assert_eq!(packet, header(hops + 1, to), "{hops}");
        }
        // 255 is the maximum and stays.
        let mut packet = header(255, to);
        increment_hop_limit(&mut packet);
        assert_eq!(packet, header(255, to));
        let mut short = [0x45, 1, 2];
        increment_hop_limit(&mut short);
        assert_eq!(short, [0x45, 1, 2]);
        let mut version_6 = [0x60; 40];
        version_6[7] = 9;
        increment_hop_limit(&mut version_6);
        assert_eq!(version_6[7], 10);
    }

    #[test]
    fn packets_for_neighbours_are_not_forwarded() {
        assert!(is_forwarded(&header(9, [223, 255, 255, 255])));
        assert!(!is_forwarded(&header(1, [224, 0, 0, 22])));
        assert!(!is_forwarded(&header(1, [255, 255, 255, 255])));
        let to = |first: [u8; 2]| {
            let mut packet = [0x60; 40];
            packet[24..26].copy_from_slice(&first);
            is_forwarded(&packet)
        };
        assert!(to([0x20, 0x01]));
        assert!(to([0xfd, 0]));
        assert!(!to([0xff, 0x02]));
        assert!(!to([0xfe, 0x80]));
        // Invalid packets pass; the engine counts them.
        assert!(is_forwarded(&[]));
        assert!(is_forwarded(&[0x45]));
    }
}
