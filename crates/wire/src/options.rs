//! TCP options: RFC 9293 section 3.2, RFC 2018 (SACK), RFC 7323 (window scale, timestamps).

use bentpipe_types::{FastOpen, PacketRef, PacketStore, SackBlock, SackBlocks, Seq, SynOptions};

use crate::error::ParseError;

/// Maximum length of a TCP header's options: its length field of four bits counts 32-bit words.
pub const MAXIMUM_OPTIONS_LENGTH: usize = 40;

// Option kinds, and lengths where they are fixed.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const MAXIMUM_SEGMENT_SIZE_LENGTH: u8 = 4;
const WINDOW_SCALE: u8 = 3;
const WINDOW_SCALE_LENGTH: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK_PERMITTED_LENGTH: u8 = 2;
const SACK: u8 = 5;
const SACK_BLOCK_LENGTH: usize = 8;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LENGTH: u8 = 10;
/// RFC 2385, replaced by RFC 5925: a signature over addresses, header and data.
const MD5_SIGNATURE: u8 = 19;
const AUTHENTICATION: u8 = 29;
/// RFC 8684.
const MULTIPATH: u8 = 30;
const FAST_OPEN: u8 = 34;
/// RFC 6994: an option shared by experiments, identified by what follows.
const EXPERIMENT: u8 = 254;
/// Experimental Fast Open (before RFC 7413 section 4.1.1; Linux's TCPOPT_FASTOPEN_MAGIC).
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xf9, 0x89];

/// Returns the length of these options in a header, padding included; at most
/// [`MAXIMUM_OPTIONS_LENGTH`] in a valid segment.
///
/// The layout is Linux's: each option is preceded by NOPs that align its fields to words, and
/// SACK-permitted takes the place of the timestamps' NOPs (RFC 7323 appendix A). A SYN's usual four
/// options take 20 bytes, timestamps 12, `n` SACK blocks 4 + 8n. If that exceeds the maximum (a SYN
/// with SACK blocks), the NOPs are omitted.
#[must_use]
pub const fn tcp_options_length(syn: SynOptions, timestamps: bool, sack_blocks: usize) -> usize {
    let aligned = aligned_length(syn, timestamps, sack_blocks);
    if aligned <= MAXIMUM_OPTIONS_LENGTH {
        return aligned;
    }
    packed_length(syn, timestamps, sack_blocks).next_multiple_of(4)
}

const fn aligned_length(syn: SynOptions, timestamps: bool, sack_blocks: usize) -> usize {
    let mut length = 0;
    if syn.maximum_segment_size.is_some() {
        length += 4;
    }
    if timestamps {
        length += 12;
    } else if syn.sack_permitted {
        length += 4;
    }
    if syn.window_scale.is_some() {
        length += 4;
    }
    if sack_blocks > 0 {
        length += 4 + SACK_BLOCK_LENGTH * sack_blocks;
    }
    if let Some(option) = syn.fast_open {
        length += (option.option_length() as usize).next_multiple_of(4);
    }
    length
}

const fn packed_length(syn: SynOptions, timestamps: bool, sack_blocks: usize) -> usize {
    let mut length = 0;
    if syn.maximum_segment_size.is_some() {
        length += MAXIMUM_SEGMENT_SIZE_LENGTH as usize;
    }
    if syn.sack_permitted {
        length += SACK_PERMITTED_LENGTH as usize;
    }
    if timestamps {
        length += TIMESTAMPS_LENGTH as usize;
    }
    if syn.window_scale.is_some() {
        length += WINDOW_SCALE_LENGTH as usize;
    }
    if sack_blocks > 0 {
        length += 2 + SACK_BLOCK_LENGTH * sack_blocks;
    }
    if let Some(option) = syn.fast_open {
        length += option.option_length() as usize;
    }
    length
}

/// The options of a segment that this TCP supports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpOptions {
    /// Options that occur only in a SYN.
    pub syn: SynOptions,
    /// Timestamps as (value, echo reply).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, most recent first.
    pub sack_blocks: SackBlocks,
}

impl TcpOptions {
    /// Returns the options of a stored packet.
    #[must_use]
    pub fn of(packets: &PacketStore, packet: PacketRef) -> Self {
        Self {
            syn: packets.syn_options(packet),
            timestamps: packets.get(packet).timestamps(),
            sack_blocks: packets.sack_blocks(packet),
        }
    }

    /// Returns their length in a header, as [`tcp_options_length`].
    #[must_use]
    pub fn length(&self) -> usize {
        tcp_options_length(
            self.syn,
            self.timestamps.is_some(),
            self.sack_blocks.as_slice().len(),
        )
    }

    /// Appends the options: [`length`](Self::length) bytes.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        let blocks = self.sack_blocks.as_slice();
        let aligned = aligned_length(self.syn, self.timestamps.is_some(), blocks.len())
            <= MAXIMUM_OPTIONS_LENGTH;
        let start = bytes.len();
        let pad = |bytes: &mut Vec<u8>, count: usize| {
            bytes.extend_from_slice(&[NO_OPERATION; 2][..if aligned { count } else { 0 }]);
        };
        if let Some(size) = self.syn.maximum_segment_size {
            let [high, low] = size.to_be_bytes();
            let option = [MAXIMUM_SEGMENT_SIZE, MAXIMUM_SEGMENT_SIZE_LENGTH, high, low];
            bytes.extend_from_slice(&option);
        }
        if self.syn.sack_permitted {
            if self.timestamps.is_none() {
                pad(bytes, 2);
            }
            bytes.extend_from_slice(&[SACK_PERMITTED, SACK_PERMITTED_LENGTH]);
        } else if self.timestamps.is_some() {
            pad(bytes, 2);
        }
        if let Some((value, echo)) = self.timestamps {
            bytes.extend_from_slice(&[TIMESTAMPS, TIMESTAMPS_LENGTH]);
            bytes.extend_from_slice(&value.to_be_bytes());
            bytes.extend_from_slice(&echo.to_be_bytes());
        }
        if let Some(shift) = self.syn.window_scale {
            pad(bytes, 1);
            bytes.extend_from_slice(&[WINDOW_SCALE, WINDOW_SCALE_LENGTH, shift]);
        }
        if !blocks.is_empty() {
            pad(bytes, 2);
            bytes.extend_from_slice(&[SACK, (2 + SACK_BLOCK_LENGTH * blocks.len()) as u8]);
            for block in blocks {
                bytes.extend_from_slice(&block.start.get().to_be_bytes());
                bytes.extend_from_slice(&block.end.get().to_be_bytes());
            }
        }
        if let Some(option) = self.syn.fast_open {
            let length = option.option_length();
            if option.is_experimental() {
                bytes.extend_from_slice(&[EXPERIMENT, length]);
                bytes.extend_from_slice(&FAST_OPEN_EXPERIMENT);
            } else {
                bytes.extend_from_slice(&[FAST_OPEN, length]);
            }
            bytes.extend_from_slice(option.cookie());
            // The padding follows here, as in Linux.
            pad(bytes, usize::from(length.next_multiple_of(4) - length));
        }
        // RFC 9293 section 3.1: the padding is zeros; the first one ends the options.
        let length = (bytes.len() - start).next_multiple_of(4);
        bytes.resize(start + length, END);
    }

    /// Parses the options. Unknown ones are skipped; of duplicates the last one counts, as in
    /// Linux. `at` is their offset in the packet.
    pub(crate) fn read(options: &[u8], at: usize) -> Result<Self, ParseError> {
        let mut read = Self::default();
        let mut rest = options;
        while let [kind, tail @ ..] = rest {
            match *kind {
                END => break,
                NO_OPERATION => {
                    rest = tail;
                    continue;
                }
                _ => (),
            }
            // RFC 9293 section 3.2: every other option has a length, which includes kind and
            // length.
            let wrong = |length| ParseError::OptionLength {
                at: at + options.len() - rest.len(),
                kind: *kind,
                length,
            };
            let length = *tail.first().ok_or(wrong(None))?;
            let body = rest
                .get(2..usize::from(length))
                .ok_or(wrong(Some(length)))?;
            read.read_one(*kind, body).ok_or(wrong(Some(length)))?;
            rest = &rest[usize::from(length)..];
        }
        Ok(read)
    }

    /// Calls `each` with every unknown option, kind and length included, up to the first invalid
    /// one.
    pub(crate) fn unknown(options: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = options;
        while let [kind, tail @ ..] = rest {
            match *kind {
                END => return,
                NO_OPERATION => {
                    rest = tail;
                    continue;
                }
                _ => (),
            }
            let Some(option) = tail
                .first()
                .filter(|length| **length >= 2)
                .and_then(|length| rest.get(..usize::from(*length)))
            else {
                return;
            };
            let fast_open = *kind == FAST_OPEN
                || *kind == EXPERIMENT && option.get(2..4) == Some(&FAST_OPEN_EXPERIMENT);
            let known = matches!(
                *kind,
                MAXIMUM_SEGMENT_SIZE | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS
            );
            if !known && !fast_open {
                each(option);
            }
            rest = &rest[option.len()..];
        }
    }

    /// Whether a segment's options, parsed as these, include a signature. Nobody without the key
    /// can change such a segment.
    pub(crate) fn are_signed(&self, options: &[u8]) -> bool {
        // Mostly there are only known options.
        options.len() > self.length() && {
            let mut signed = false;
            Self::unknown(options, |option| {
                signed |= matches!(option[0], MD5_SIGNATURE | AUTHENTICATION);
            });
            signed
        }
    }

    /// Whether a segment's options include one of Multipath TCP.
    pub(crate) fn are_multipath(options: &[u8]) -> bool {
        let mut multipath = false;
        Self::unknown(options, |option| multipath |= option[0] == MULTIPATH);
        multipath
    }

    /// Parses one option, or returns `None` if its length is wrong for its kind.
    fn read_one(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        match (kind, body) {
            (MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
                self.syn.maximum_segment_size = Some(u16::from_be_bytes([high, low]));
            }
            (WINDOW_SCALE, &[shift]) => self.syn.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.syn.sack_permitted = true,
            (TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                let value = u32::from_be_bytes([v0, v1, v2, v3]);
                let echo = u32::from_be_bytes([e0, e1, e2, e3]);
                self.timestamps = Some((value, echo));
            }
            (SACK, body) if body.len() % SACK_BLOCK_LENGTH == 0 => {
                let number = |b: &[u8]| Seq::new(u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
                self.sack_blocks = body
                    .chunks_exact(SACK_BLOCK_LENGTH)
                    .map(|block| SackBlock {
                        start: number(&block[..4]),
                        end: number(&block[4..]),
                    })
                    .collect();
            }
            // A cookie of invalid length is ignored (RFC 7413 section 4.1.1).
            (FAST_OPEN, cookie) => self.syn.fast_open = FastOpen::new(cookie, false),
            (EXPERIMENT, [high, low, cookie @ ..]) if [*high, *low] == FAST_OPEN_EXPERIMENT => {
                self.syn.fast_open = FastOpen::new(cookie, true);
            }
            (MAXIMUM_SEGMENT_SIZE | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => {
                return None;
            }
            _ => (), // unknown
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SynOptions = SynOptions {
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        fast_open: None,
    };
    const NONE: SynOptions = SynOptions {
        maximum_segment_size: None,
        window_scale: None,
        sack_permitted: false,
        fast_open: None,
    };

    fn written(options: &TcpOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.write(&mut bytes);
        assert_eq!(bytes.len(), options.length());
        bytes
    }

    fn blocks(count: u32) -> SackBlocks {
        let block = |i| SackBlock {
            start: Seq::new(100 * i),
            end: Seq::new(100 * i + 50),
        };
        (0..count).map(block).collect()
    }

    #[test]
    fn a_syn_is_laid_out_as_linux_does() {
        let options = TcpOptions {
            syn: ALL,
            timestamps: Some((0x0102_0304, 0)),
            ..TcpOptions::default()
        };
        assert_eq!(
            written(&options),
            [
                2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7
            ]
        );
        let options = TcpOptions {
            syn: ALL,
            ..TcpOptions::default()
        };
        assert_eq!(
            written(&options),
            [2, 4, 0x05, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]
        );
    }

    #[test]
    fn option_lengths_of_common_segments_match() {
        assert_eq!(tcp_options_length(NONE, false, 0), 0);
        assert_eq!(tcp_options_length(NONE, true, 0), 12);
        assert_eq!(tcp_options_length(NONE, false, 1), 12);
        assert_eq!(tcp_options_length(NONE, false, 4), 36);
        // RFC 2018 section 3: three blocks beside timestamps.
        assert_eq!(tcp_options_length(NONE, true, 3), 40);
        assert!(tcp_options_length(NONE, true, 4) > MAXIMUM_OPTIONS_LENGTH);
        assert_eq!(tcp_options_length(ALL, true, 0), 20);
        // No room for NOPs: 4 + 10 + 26.
        let mss = SynOptions {
            maximum_segment_size: Some(536),
            ..NONE
        };
        assert_eq!(tcp_options_length(mss, true, 3), 40);
    }

    #[test]
    fn every_combination_is_read_back() {
        for choice in 0..16u8 {
            for count in 0..=4 {
                let options = TcpOptions {
                    syn: SynOptions {
                        maximum_segment_size: (choice & 1 != 0).then_some(1448),
                        window_scale: (choice & 2 != 0).then_some(14),
                        sack_permitted: choice & 4 != 0,
                        fast_open: FastOpen::new(&[7; 16][..usize::from(choice)], count == 1),
                    },
                    timestamps: (choice & 8 != 0).then_some((u32::MAX, 1)),
                    sack_blocks: blocks(count),
                };
                if options.length() > MAXIMUM_OPTIONS_LENGTH {
                    continue;
                }
                let bytes = written(&options);
                assert_eq!(bytes.len() % 4, 0);
                assert_eq!(TcpOptions::read(&bytes, 0), Ok(options));
            }
        }
    }

    #[test]
    fn unknown_options_are_skipped_up_to_the_end_option() {
        let bytes = [
            254, 4, 1, 2, 1, 3, 3, 9, // an unknown one, NOP, window scale
            253, 2, 0, 4, // an unknown empty one, end, and what is not read
        ];
        let read = TcpOptions::read(&bytes, 0).unwrap();
        assert_eq!(read.syn.window_scale, Some(9));
        assert!(!read.syn.sack_permitted);
    }

    #[test]
    fn invalid_option_lengths_are_errors_with_their_position() {
        let wrong = |at, kind, length| Err(ParseError::OptionLength { at, kind, length });
        assert_eq!(TcpOptions::read(&[1, 8], 40), wrong(41, 8, None));
        assert_eq!(TcpOptions::read(&[1, 254, 0], 40), wrong(41, 254, Some(0)));
        assert_eq!(TcpOptions::read(&[1, 254, 1], 40), wrong(41, 254, Some(1)));
        assert_eq!(TcpOptions::read(&[254, 4, 0], 40), wrong(40, 254, Some(4)));
        assert_eq!(TcpOptions::read(&[2, 3, 0, 0], 40), wrong(40, 2, Some(3)));
        assert_eq!(
            TcpOptions::read(&[5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 40),
            wrong(40, 5, Some(11))
        );
    }
}
