//! `framing` of a link or a direction.

use std::borrow::Cow;

use bentpipe_link::Framing;
use bentpipe_middlebox::{Encapsulation, Ethernet, FixedFraming, Gse, TransportStream};
use bentpipe_types::words;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::quantity::error::QuantityError;
use crate::quantity::notation::number;
use crate::quantity::scalar::{Scalar, scalar};
use crate::quantity::size::Size;

words! {
    /// Kind of framing.
    FramingKind {
        /// None: rates and lengths are those of IP packets.
        None = "none",
        /// Ethernet frames: 18 bytes of header and check sequence, at least 46 bytes of packet, and
        /// 20 bytes of preamble and gap. Link addresses are known from the topology, unless `arp`
        /// is set.
        Ethernet = "ethernet",
        /// PPP in HDLC-like framing, 7 bytes: a flag, address, control, 2 of protocol, 2 of check
        /// sequence (RFC 1662 section 3.1). Escaped bytes are not included.
        Ppp = "ppp",
        /// PPP without address and control, and with one byte of protocol (RFC 1661 sections 6.5
        /// and 6.6): 4 bytes.
        PppCompressed = "ppp-compressed",
        /// Multiprotocol encapsulation in MPEG-TS cells of 188 bytes (EN 301 192 section 7.1): 16
        /// bytes around a packet; a cell has 4 bytes of header, and a pointer of 1 byte if a packet
        /// begins in it. Packing: a packet begins in the cell in which the packet before it ends,
        /// if it is queued when that one is sent; else the cell is padded.
        Mpe = "mpe",
        /// MPE in which each packet begins a cell, and the last cell of a packet is padded.
        MpePadding = "mpe-padding",
        /// Unidirectional lightweight encapsulation in MPEG-TS cells of 188 bytes (RFC 4326): 14
        /// bytes around a packet, with a destination address. Cells and packing as with "mpe",
        /// except that no packet begins in the last byte of a cell.
        Ule = "ule",
        /// ULE in which each packet begins a cell, and the last cell of a packet is padded.
        UlePadding = "ule-padding",
        /// Generic stream encapsulation with a label of 6 bytes (TS 102 606-1 section 4.2): 10
        /// bytes around a packet; packets of more than 4087 bytes are sent in several GSE packets.
        /// Baseband frames are not included.
        Gse = "gse",
    }
}

/// Framing: a kind, or a number of bytes that is added to each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkFraming {
    /// One of the kinds.
    Kind(FramingKind),
    /// This number of bytes.
    Bytes(u32),
}

/// Most bytes that a framing may add to each packet.
const MOST_BYTES: u64 = 1000;

impl LinkFraming {
    /// No framing.
    pub const NONE: Self = Self::Kind(FramingKind::None);
    /// Ethernet.
    pub const ETHERNET: Self = Self::Kind(FramingKind::Ethernet);

    /// Whether it is a framing of DVB, which carries whole IP packets.
    #[must_use]
    pub fn is_dvb(self) -> bool {
        use FramingKind::{Gse, Mpe, MpePadding, Ule, UlePadding};
        matches!(self, Self::Kind(Mpe | MpePadding | Ule | UlePadding | Gse))
    }

    /// Whether it is the framing of a serial line, in place of SLIP's.
    #[must_use]
    pub fn is_serial(self) -> bool {
        matches!(
            self,
            Self::Bytes(_) | Self::Kind(FramingKind::Ppp | FramingKind::PppCompressed)
        )
    }
}

impl Serialize for LinkFraming {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Kind(kind) => kind.serialize(serializer),
            Self::Bytes(bytes) => serializer.serialize_u32(*bytes),
        }
    }
}

impl Scalar for LinkFraming {
    fn expected() -> Cow<'static, str> {
        let names: Vec<_> = FramingKind::ALL
            .iter()
            .map(|kind| format!("\"{kind}\""))
            .collect();
        format!(r#"{}, or a size such as "6 B""#, names.join(", ")).into()
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        if let Some(kind) = FramingKind::ALL.iter().find(|kind| kind.name() == text) {
            return Some(Ok(Self::Kind(*kind)));
        }
        let size = Size::read(text)?;
        Some(size.and_then(|size| match size.0.get() {
            bytes @ 1..=MOST_BYTES => Ok(Self::Bytes(bytes as u32)),
            _ => Err(QuantityError::new(r#"a size from "1 B" to "1 kB""#, text)),
        }))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = generator.subschema_for::<FramingKind>();
        json_schema!({
            "anyOf": [kinds, { "type": "string", "pattern": concat!("^", number!(), " *(B|kB|KB)$") }],
            "examples": ["ppp", "6 B"],
        })
    }
}

scalar!(LinkFraming);

/// Returns the framing of a direction, if it has one.
pub(crate) fn engine_framing(framing: LinkFraming) -> Option<Box<dyn Framing>> {
    let cells = |encapsulation, packing| -> Option<Box<dyn Framing>> {
        Some(Box::new(TransportStream::new(encapsulation, packing)))
    };
    let kind = match framing {
        LinkFraming::Kind(kind) => kind,
        LinkFraming::Bytes(bytes) => return Some(Box::new(FixedFraming::new(u64::from(bytes)))),
    };
    match kind {
        FramingKind::None => None,
        FramingKind::Ethernet => Some(Box::new(Ethernet::default())),
        FramingKind::Ppp => Some(Box::new(FixedFraming::PPP)),
        FramingKind::PppCompressed => Some(Box::new(FixedFraming::PPP_COMPRESSED)),
        FramingKind::Mpe => cells(Encapsulation::Mpe, true),
        FramingKind::MpePadding => cells(Encapsulation::Mpe, false),
        FramingKind::Ule => cells(Encapsulation::Ule, true),
        FramingKind::UlePadding => cells(Encapsulation::Ule, false),
        FramingKind::Gse => Some(Box::new(Gse)),
    }
}

/// MTU of Ethernet (RFC 894), and default maximum receive unit of PPP (RFC 1661 section 6.1).
const ETHERNET_AND_PPP: u32 = 1500;

/// Returns the default MTU of a framing, if it has one.
pub(crate) fn default_mtu(framing: LinkFraming) -> Option<u32> {
    match framing {
        LinkFraming::Kind(
            FramingKind::Ethernet | FramingKind::Ppp | FramingKind::PppCompressed,
        ) => Some(ETHERNET_AND_PPP),
        other => longest_packet(other),
    }
}

/// Returns the longest packet that a framing can carry, if it has a limit below that of IP.
pub(crate) fn longest_packet(framing: LinkFraming) -> Option<u32> {
    let encapsulation = match framing {
        LinkFraming::Kind(FramingKind::Mpe | FramingKind::MpePadding) => Encapsulation::Mpe,
        LinkFraming::Kind(FramingKind::Ule | FramingKind::UlePadding) => Encapsulation::Ule,
        LinkFraming::Kind(_) | LinkFraming::Bytes(_) => return None,
    };
    Some(encapsulation.longest_packet() as u32)
}
