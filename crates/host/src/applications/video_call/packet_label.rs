//! Content of a video call's packets, packed into the numbers of datagrams.

/// Content of a datagram's number.
///
/// From the highest bit: 1 for a report, and 7 bits of the call's number. A report continues with 8
/// unused bits and the 48 bits of the report. A packet of video continues with 16 bits of the
/// frame's number, 24 of the packet's number, 8 of the packet's index in its frame, and 8 of the
/// number of packets in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    Report(u64),
    Video {
        frame: u16,
        sequence: u32,
        index: u8,
        of: u8,
    },
}

impl Label {
    /// Returns the datagram number that stands for this label in a call.
    pub(super) fn pack(self, call: u64) -> u64 {
        let call = (call & 0x7f) << 56;
        match self {
            Self::Report(bits) => 1 << 63 | call | bits & 0xffff_ffff_ffff,
            Self::Video {
                frame,
                sequence,
                index,
                of,
            } => {
                let (frame, sequence) = (u64::from(frame) << 40, u64::from(sequence & SEQUENCE));
                call | frame | sequence << 16 | u64::from(index) << 8 | u64::from(of)
            }
        }
    }

    /// Returns the low bits of the call's number, and the label.
    pub(super) fn unpack(number: u64) -> (u64, Self) {
        let call = number >> 56 & 0x7f;
        let label = if number >> 63 == 1 {
            Self::Report(number & 0xffff_ffff_ffff)
        } else {
            Self::Video {
                frame: (number >> 40) as u16,
                sequence: (number >> 16) as u32 & SEQUENCE,
                index: (number >> 8) as u8,
                of: number as u8,
            }
        };
        (call, label)
    }
}

/// Mask of the bits of a packet's number.
pub(super) const SEQUENCE: u32 = (1 << 24) - 1;

/// Returns the number nearest to `near` with these low bits, as many as `mask` has, as sequence
/// numbers are extended in RFC 3550 appendix A.1. Numbers begin with 0.
pub(super) fn extend(low: u64, mask: u64, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near) & mask;
    if ahead <= mask / 2 {
        near + ahead
    } else {
        near.checked_sub(mask + 1 - ahead).unwrap_or(near + ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_packed_into_datagram_numbers_and_unpacked_equal() {
        for label in [
            Label::Report(0xffff_0000_1234),
            Label::Video {
                frame: 0xfedc,
                sequence: 0x12_3456,
                index: 254,
                of: 255,
            },
            Label::Video {
                frame: 0,
                sequence: SEQUENCE,
                index: 0,
                of: 1,
            },
        ] {
            assert_eq!(Label::unpack(label.pack(127)), (127, label));
            assert_eq!(Label::unpack(label.pack(128)), (0, label));
        }
    }

    #[test]
    fn sequence_numbers_are_extended_to_the_nearest_value() {
        for (near, number) in [
            (0, 5),
            (70_000, 65_535),
            (65_535, 65_536),
            (131_000, 131_073),
        ] {
            assert_eq!(extend(number & 0xffff, 0xffff, near), number);
        }
    }
}
