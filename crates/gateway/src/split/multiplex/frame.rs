//! Frames: the messages that two gateways exchange on a trunk.
//!
//! A frame begins with its type (one byte) and its stream number (four bytes), in network byte
//! order. The other fields of each type have a fixed length, except for data, which its length
//! precedes. So a reader knows after a few bytes how long a frame is, and never has to hold more
//! than [`MAX_FRAME`] bytes.

use std::net::IpAddr;

use bentpipe_types::{Address, Endpoint, FastOpen, Seq};

/// Most bytes in a data frame: a stream's turn, before the next stream's.
pub(super) const MAX_DATA: usize = 8 << 10;
/// Most bytes of data on a SYN. The host retransmits further ones (RFC 7413 section 4.2.2).
pub(super) const MAX_SYN_DATA: usize = 4 << 10;
/// Most bytes of a frame, data excluded.
pub(super) const MAX_CONTROL: usize = 96;
/// Most bytes of any frame.
pub(super) const MAX_FRAME: usize = MAX_CONTROL + MAX_DATA;
/// Bytes that precede the data in a data frame.
pub(super) const DATA_HEADER: usize = 7;

/// A message about one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame<'a> {
    /// A host opens a connection.
    Open(OpenFrame<'a>),
    /// The other host has answered.
    Answer(AnswerFrame),
    /// The next bytes of the stream.
    Data {
        /// Whether the host has set PSH: deliver at once.
        push: bool,
        bytes: &'a [u8],
    },
    /// The receiver of this frame may send up to this stream offset.
    Credit(u64),
    /// The host has sent a FIN: no more data follows.
    End,
    /// The host has acknowledged the other host's FIN.
    Confirm,
    /// The connection no longer exists.
    Reset(ResetReason),
}

/// A host's SYN, which the receiving gateway sends on to the other host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenFrame<'a> {
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    /// Real addresses of both hosts, source first, if they have any.
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) sequence: Seq,
    /// Initial credit for data in the opposite direction.
    pub(super) credit: u64,
    pub(super) fast_open: Option<FastOpen>,
    pub(super) text: &'a [u8],
}

/// The other host's answer to a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AnswerFrame {
    pub(super) sequence: Seq,
    pub(super) credit: u64,
    /// Bytes of the SYN's data that were accepted.
    pub(super) taken: u16,
    pub(super) cookie: Option<FastOpen>,
}

/// Reason for a reset frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResetReason {
    /// A host or a gateway has reset the connection.
    Reset,
    /// The other host has refused the connection.
    Refused,
    /// The other host does not answer.
    Unreachable,
    /// The other gateway has no memory for the connection.
    NoMemory,
    /// An earlier connection between the same endpoints still exists, and the other gateway has
    /// data of it left to deliver.
    EarlierConnection,
}

/// Bytes that are no valid frame. The peer is then not a gateway of this kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InvalidFrame;

const OPEN: u8 = 1;
const ANSWER: u8 = 2;
const DATA: u8 = 3;
const PUSHED: u8 = 4;
const CREDIT: u8 = 5;
const END: u8 = 6;
const CONFIRM: u8 = 7;
const RESET: u8 = 8;

/// Appends a frame to `out`.
pub(super) fn write(out: &mut Vec<u8>, stream: u32, frame: &Frame<'_>) {
    out.push(match frame {
        Frame::Open(_) => OPEN,
        Frame::Answer(_) => ANSWER,
        Frame::Data { push: false, .. } => DATA,
        Frame::Data { push: true, .. } => PUSHED,
        Frame::Credit(_) => CREDIT,
        Frame::End => END,
        Frame::Confirm => CONFIRM,
        Frame::Reset(_) => RESET,
    });
    out.extend(stream.to_be_bytes());
    match *frame {
        Frame::Open(open) => {
            for end in [open.source, open.destination] {
                out.extend(end.address.0.to_be_bytes());
                out.extend(end.port.to_be_bytes());
            }
            write_ip(out, open.ip);
            out.extend(open.sequence.get().to_be_bytes());
            out.extend(open.credit.to_be_bytes());
            write_cookie(out, open.fast_open);
            write_text(out, open.text);
        }
        Frame::Answer(answer) => {
            out.extend(answer.sequence.get().to_be_bytes());
            out.extend(answer.credit.to_be_bytes());
            out.extend(answer.taken.to_be_bytes());
            write_cookie(out, answer.cookie);
        }
        Frame::Data { bytes, .. } => write_text(out, bytes),
        Frame::Credit(offset) => out.extend(offset.to_be_bytes()),
        Frame::End | Frame::Confirm => {}
        Frame::Reset(reason) => out.push(reason as u8),
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text);
}

fn write_ip(out: &mut Vec<u8>, ip: Option<(IpAddr, IpAddr)>) {
    match ip {
        None => out.push(0),
        Some((IpAddr::V4(source), IpAddr::V4(destination))) => {
            out.push(4);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
        // The two addresses always have the same version.
        Some((source, destination)) => {
            out.push(6);
            for address in [source, destination] {
                out.extend(match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                });
            }
        }
    }
}

/// Marks a missing cookie. Otherwise the byte is the cookie's length, with [`EXPERIMENTAL`] set for
/// the option's experimental kind.
const NO_COOKIE: u8 = 0xff;
const EXPERIMENTAL: u8 = 0x80;

fn write_cookie(out: &mut Vec<u8>, option: Option<FastOpen>) {
    let Some(option) = option else {
        out.push(NO_COOKIE);
        return;
    };
    let kind = if option.is_experimental() {
        EXPERIMENTAL
    } else {
        0
    };
    out.push(option.cookie().len() as u8 | kind);
    out.extend(option.cookie());
}

/// Returns the first frame in `bytes`, with its stream number and its length; `None` if the frame
/// is not complete yet.
///
/// # Errors
/// Returns [`InvalidFrame`] if the bytes do not begin with a valid frame.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(u32, Frame<'_>, usize)>, InvalidFrame> {
    let mut left = bytes;
    let Some((stream, frame)) = read_one(&mut left).transpose()? else {
        return if bytes.len() >= MAX_FRAME {
            Err(InvalidFrame)
        } else {
            Ok(None)
        };
    };
    Ok(Some((stream, frame, bytes.len() - left.len())))
}

/// Returns `None` if the frame is not complete yet.
fn read_one<'a>(left: &mut &'a [u8]) -> Option<Result<(u32, Frame<'a>), InvalidFrame>> {
    let kind = u8::from_be_bytes(take(left)?);
    let stream = u32::from_be_bytes(take(left)?);
    let frame = match kind {
        OPEN => {
            let source = read_endpoint(left)?;
            let destination = read_endpoint(left)?;
            let Ok(ip) = read_ip(left)? else {
                return Some(Err(InvalidFrame));
            };
            let sequence = Seq::new(u32::from_be_bytes(take(left)?));
            let credit = u64::from_be_bytes(take(left)?);
            let Ok(fast_open) = read_cookie(left)? else {
                return Some(Err(InvalidFrame));
            };
            let Ok(text) = read_text(left, MAX_SYN_DATA)? else {
                return Some(Err(InvalidFrame));
            };
            Frame::Open(OpenFrame {
                source,
                destination,
                ip,
                sequence,
                credit,
                fast_open,
                text,
            })
        }
        ANSWER => {
            let sequence = Seq::new(u32::from_be_bytes(take(left)?));
            let credit = u64::from_be_bytes(take(left)?);
            let taken = u16::from_be_bytes(take(left)?);
            let Ok(cookie) = read_cookie(left)? else {
                return Some(Err(InvalidFrame));
            };
            Frame::Answer(AnswerFrame {
                sequence,
                credit,
                taken,
                cookie,
            })
        }
        DATA | PUSHED => match read_text(left, MAX_DATA)? {
            Ok(bytes) => Frame::Data {
                push: kind == PUSHED,
                bytes,
            },
            Err(broken) => return Some(Err(broken)),
        },
        CREDIT => Frame::Credit(u64::from_be_bytes(take(left)?)),
        END => Frame::End,
        CONFIRM => Frame::Confirm,
        RESET => Frame::Reset(match u8::from_be_bytes(take(left)?) {
            0 => ResetReason::Reset,
            1 => ResetReason::Refused,
            2 => ResetReason::Unreachable,
            3 => ResetReason::NoMemory,
            4 => ResetReason::EarlierConnection,
            _ => return Some(Err(InvalidFrame)),
        }),
        _ => return Some(Err(InvalidFrame)),
    };
    Some(Ok((stream, frame)))
}

fn take<const LENGTH: usize>(left: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(*taken)
}

fn read_endpoint(left: &mut &[u8]) -> Option<Endpoint> {
    let address = Address(u16::from_be_bytes(take(left)?));
    let port = u16::from_be_bytes(take(left)?);
    Some(Endpoint { address, port })
}

type Ip = Option<(IpAddr, IpAddr)>;

fn read_ip(left: &mut &[u8]) -> Option<Result<Ip, InvalidFrame>> {
    Some(Ok(match take(left)? {
        [0] => None,
        [4] => {
            let source: [u8; 4] = take(left)?;
            let destination: [u8; 4] = take(left)?;
            Some((source.into(), destination.into()))
        }
        [6] => {
            let source: [u8; 16] = take(left)?;
            let destination: [u8; 16] = take(left)?;
            Some((source.into(), destination.into()))
        }
        _ => return Some(Err(InvalidFrame)),
    }))
}

fn read_cookie(left: &mut &[u8]) -> Option<Result<Option<FastOpen>, InvalidFrame>> {
    let kind = u8::from_be_bytes(take(left)?);
    if kind == NO_COOKIE {
        return Some(Ok(None));
    }
    let length = usize::from(kind & !EXPERIMENTAL);
    if length > 16 {
        return Some(Err(InvalidFrame));
    }
    let (cookie, rest) = left.split_at_checked(length)?;
    *left = rest;
    let option = FastOpen::new(cookie, kind & EXPERIMENTAL != 0);
    Some(option.map(Some).ok_or(InvalidFrame))
}

fn read_text<'a>(left: &mut &'a [u8], most: usize) -> Option<Result<&'a [u8], InvalidFrame>> {
    let length = usize::from(u16::from_be_bytes(take(left)?));
    if length > most {
        return Some(Err(InvalidFrame));
    }
    let (text, rest) = left.split_at_checked(length)?;
    *left = rest;
    Some(Ok(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(text: &[u8]) -> Vec<Frame<'_>> {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        let open = OpenFrame {
            source: end(1, 40_000),
            destination: end(u16::MAX, 80),
            ip: None,
            sequence: Seq::new(u32::MAX),
            credit: 65_535,
            fast_open: None,
            text: &[],
        };
        let v4 = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let v6 = ([1; 16].into(), [0xfe; 16].into());
        vec![
            Frame::Open(open),
            Frame::Open(OpenFrame {
                ip: Some(v4),
                fast_open: FastOpen::new(&[], false),
                ..open
            }),
            Frame::Open(OpenFrame {
                ip: Some(v6),
                fast_open: FastOpen::new(&[7; 16], true),
                text: &text[..text.len().min(MAX_SYN_DATA)],
                ..open
            }),
            Frame::Answer(AnswerFrame {
                sequence: Seq::new(5),
                credit: u64::MAX,
                taken: 77,
                cookie: FastOpen::new(&[9; 8], false),
            }),
            Frame::Data {
                push: false,
                bytes: text,
            },
            Frame::Data {
                push: true,
                bytes: &text[..text.len() / 2],
            },
            Frame::Credit(1 << 40),
            Frame::End,
            Frame::Confirm,
            Frame::Reset(ResetReason::Reset),
            Frame::Reset(ResetReason::Refused),
            Frame::Reset(ResetReason::Unreachable),
            Frame::Reset(ResetReason::NoMemory),
            Frame::Reset(ResetReason::EarlierConnection),
        ]
    }

    #[test]
    fn long_and_unknown_frames_are_invalid() {
        assert_eq!(read(&[0, 0, 0, 0, 1]), Err(InvalidFrame));
        assert_eq!(read(&[RESET, 0, 0, 0, 1, 9]), Err(InvalidFrame));
        let mut long = vec![DATA, 0, 0, 0, 1];
        long.extend((MAX_DATA as u16 + 1).to_be_bytes());
        assert_eq!(read(&long), Err(InvalidFrame));
        assert_eq!(read(&[DATA, 0, 0]), Ok(None));
    }

    proptest! {
        #[test]
        fn frames_are_read_back_in_pieces_of_any_size(
            length in 0..MAX_DATA,
            piece in 1_usize..3_000,
        ) {
            let mut text = vec![0; length];
            bentpipe_types::filler::fill(3, &mut text);
            let frames = frames(&text);
            let mut bytes = Vec::new();
            for (stream, frame) in frames.iter().enumerate() {
                let before = bytes.len();
                write(&mut bytes, stream as u32, frame);
                let text = match frame {
                    Frame::Data { bytes, .. } => bytes.len(),
                    Frame::Open(open) => open.text.len(),
                    _ => 0,
                };
                prop_assert!(bytes.len() - before - text <= MAX_CONTROL);
            }
            let (mut have, mut at, mut next) = (Vec::new(), 0, 0);
            for piece in bytes.chunks(piece) {
                have.extend_from_slice(piece);
                while let Some((stream, frame, length)) = read(&have[at..]).expect("frames") {
                    prop_assert_eq!(stream, next as u32);
                    prop_assert_eq!(&frame, &frames[next]);
                    (at, next) = (at + length, next + 1);
                }
            }
            prop_assert_eq!((at, next), (bytes.len(), frames.len()));
        }

        #[test]
        fn no_input_exceeds_the_longest_frame(bytes in prop::collection::vec(any::<u8>(), 0..MAX_FRAME + 100)) {
            match read(&bytes) {
                Ok(Some((.., length))) => prop_assert!(length <= MAX_FRAME && length <= bytes.len()),
                Ok(None) => prop_assert!(bytes.len() < MAX_FRAME),
                Err(InvalidFrame) => {}
            }
        }
    }
}
