//! `[links.NAME]`.

use std::fmt;

use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Unexpected, Visitor};

use super::{
    AccessFile, AcksFile, AcmFile, Compression, FadingFile, OutageFile, QueueFile, ReorderingFile,
    StepFile, TraceFile,
};
use crate::quantity::{Delay, Length, Mtu, Probability, QueueLimit, Rate, Redundancy};
use crate::scalar::inline_schema;
use bentpipe_types::words;

/// A table with the keys of a direction among its own: first some of its own, then what a direction is
/// at the least, more of its own, then the rest, and what comes last. So both tables have the same keys, and
/// each key one description.
macro_rules! with_direction_keys {
    (
        $(#[$of:meta])*
        $table:ident {
            { $($first:tt)* }
            { $($then:tt)* }
            { $($last:tt)* }
        }
    ) => {
        $(#[$of])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $table {
            $($first)*
            /// Rate of the transmitter in bit/s, IP headers included. Required of the link or of
            /// each direction, unless `schedule` or `traces` have it from the start, or `acm` makes it.
            pub rate: Option<Rate>,
            /// Propagation delay, one way. Up to 1 h; a geostationary hop takes 240 to 280 ms. Required of the
            /// link or of each direction, unless `schedule` or `traces` have it from the start.
            pub delay: Option<Delay>,
            $($then)*
            /// Where packets wait for the transmitter.
            pub queue: Option<QueueFile>,
            /// What loses packets on the way. Default: nothing.
            pub errors: Option<ErrorsFile>,
            /// Bits on the air per bit of packet, for coding and framing: "16/15", or 1.0667. Default: 1.
            pub redundancy: Option<Redundancy>,
            /// When it may send: always, or when a hub lets it; in a fade (`schedule`, `traces`, `fading`) the same bits then
            /// take more of the carrier. Default: always.
            pub access: Option<AccessFile>,
            /// What is done about acknowledgments that are too many for the link.
            pub acks: Option<AcksFile>,
            /// What makes headers shorter on this link. Default: "none".
            pub compression: Option<Compression>,
            /// Send all packets in an IP-in-IP tunnel from one end of the link to the other (RFC 2003): 20
            /// bytes more in each. Default: false; with compaction, true.
            pub tunnel: Option<bool>,
            /// How rate, delay and losses change: steps, each with when it comes and what it changes. What no
            /// step has changed yet is as the other keys have it.
            pub schedule: Option<Vec<StepFile>>,
            /// The schedule begins again that often. Default: its last step holds until the end.
            pub schedule_every: Option<Length>,
            /// Files that say how rate, delay and losses change: recordings and tables.
            pub traces: Option<Vec<TraceFile>>,
            /// Adaptive coding and modulation: the rate, and outages, that follow from the attenuation which
            /// `schedule` or `traces` say. Default: none; the rate is what the other keys say.
            pub acm: Option<AcmFile>,
            /// When the link goes away, and what becomes of packets.
            pub outages: Option<Vec<OutageFile>>,
            /// A link that is clear or faded, by turns, at random.
            pub fading: Option<FadingFile>,
            /// Share of the packets that arrive twice.
            pub duplication: Option<Probability>,
            /// Share of the packets that arrive with a wrong checksum: their receiver counts them and throws them
            /// away.
            pub corruption: Option<Probability>,
            /// Packets that come late, so that others overtake them.
            pub reordering: Option<ReorderingFile>,
            /// Whether a packet waits for those sent before it, where the delay has fallen meanwhile. Default:
            /// true; false lets it overtake them.
            pub in_order: Option<bool>,
            $($last)*
        }
    };
}

with_direction_keys! {
    /// A link: two one-way links, one each way. What the table itself says holds for both directions;
    /// `forward` and `return` say what differs.
    LinkFile {
        {
            /// The two nodes it joins. Forward is from the first to the second. With `broadcast`, there may be more
            /// than one behind the first.
            pub between: Between,
            /// One channel that all behind the first node of `between` hear, each host of a counted one too: what
            /// the first sends is transmitted once. A packet for one of them is that one's; of one for a group,
            /// each that leads to members gets a copy. Random `errors` are of each that hears, on its own; queue,
            /// changes and `lost_packets` are the channel's, and so the same for all. Needs `one_way = true`: what
            /// goes back takes links of its own. Default: false.
            #[serde(default)]
            pub broadcast: bool,
            /// There is only the forward direction: what goes back takes another way. Default: false.
            #[serde(default)]
            pub one_way: bool,
        }
        {
            /// The longest IP packet that it takes, either way, a tunnel's header aside. A router drops what is
            /// longer and says so (`icmp`); a host or a gateway that ends connections at the link sends no
            /// longer ones (an interface's MTU). "128 B" to "65535 B" ("65515 B" in a tunnel, whose header is in the
            /// packet, too), or a kind of network (gaid1998, table 1): "hyperchannel" 65535, "token-ring-16" 17914, "token-ring-4" 4464, "fddi" 4352, "ethernet" 1500,
            /// "ieee-802.3" 1492, "x.25" 576, "point-to-point" 296 B. Default: no limit; on Ethernet 1500 B.
            pub mtu: Option<Mtu>,
            /// Cut what is longer than `mtu` into fragments (RFC 791): nobody sends shorter packets for this
            /// link's sake, none is refused. Fragments wait, travel and are lost one by one, and are put together
            /// where the packet is addressed to: at the host, at a hybrid gateway, or at the end of the
            /// link's tunnel, whose outer packets are cut. Default: false.
            pub fragment: Option<bool>,
            /// What packets travel in. Default: "none".
            pub framing: Option<LinkFraming>,
            /// Ask for the other end's link address before anything is sent there (RFC 826; with ip = "v6" by
            /// neighbour discovery, RFC 4861). Needs `framing = "ethernet"` and both directions. Default: the
            /// addresses are known from the topology, as from a table that is loaded, and nobody asks.
            pub arp: Option<ArpFile>,
        }
        {
            /// What the direction from the first node to the second has of its own.
            pub forward: Option<DirectionFile>,
            /// What the direction from the second node to the first has of its own.
            #[serde(rename = "return")]
            pub backward: Option<DirectionFile>,
        }
    }
}

with_direction_keys! {
    /// One direction of a link. What is not said here, the link says for both.
    #[derive(Default)]
    DirectionFile { {} {} {} }
}

words! {
    /// What packets travel in on a link.
    LinkFraming {
        /// Nothing: rates and lengths are those of IP packets.
        None = "none",
        /// Ethernet frames: 18 bytes of header and check sequence, 46 bytes of packet at least, 20 bytes
        /// of preamble and gap. Neighbours' addresses are known from the topology, unless `arp` has them
        /// asked for.
        Ethernet = "ethernet",
    }
}

/// How the two ends of a link find out each other's link addresses. A packet for an address that is not known
/// waits for the answer to a request, which is sent again after 1 s, three times in all; then what waits is
/// given up. Requests and answers are packets like others: they wait, take the link's time and may be lost.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArpFile {
    /// How long an address is good for after it was last heard (RFC 1122 section 2.3.2.1). "1 s" to "24 h".
    /// Default: "60 s".
    pub timeout: Option<Length>,
    /// Packets that wait for an answer at most; one more drops the oldest. "1 packets" at least (RFC 1122 section
    /// 2.3.2.2). Default: "101 packets".
    pub queue: Option<QueueLimit>,
}

/// What loses packets on the way, after they were transmitted: a bit error rate or a packet loss
/// rate, and listed packets besides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorsFile {
    /// Probability that a bit is wrong, independently of the others; a packet with a wrong bit is
    /// lost. A packet of n bits then survives with probability (1 - rate)^n: long ones suffer more.
    pub bit_error_rate: Option<Probability>,
    /// Probability that a packet is lost, whatever its length.
    pub packet_loss_rate: Option<Probability>,
    /// The losses of `packet_loss_rate` come in bursts, of so many packets on average (Gilbert and
    /// Elliott): 1 or more. Of a loss rate p, bursts last for p / (1 - p) packets at least.
    pub mean_burst_packets: Option<f64>,
    /// The share of packets lost while a burst lasts. Default: 1, all of them.
    pub loss_in_burst: Option<Probability>,
    /// The share of packets lost between two bursts. Default: 0, none.
    pub loss_between_bursts: Option<Probability>,
    /// These packets are lost: [20, 21] loses the 20th and 21st that enter the link, counted from
    /// 1. Only in `forward` or `return`.
    pub lost_packets: Option<Vec<u64>>,
}

/// The two nodes that a link joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Between(pub Vec<String>);

impl<'de> Deserialize<'de> for Between {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ends;
        impl<'de> Visitor<'de> for Ends {
            type Value = Between;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"two nodes such as ["server", "client"]"#)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Between, A::Error> {
                let mut ends = Vec::with_capacity(2);
                while let Some(end) = seq.next_element()? {
                    ends.push(end);
                }
                if ends.len() < 2 {
                    let got = format!("an array of {}", ends.len());
                    return Err(de::Error::invalid_value(Unexpected::Other(&got), &self));
                }
                Ok(Between(ends))
            }
        }
        deserializer.deserialize_seq(Ends)
    }
}

inline_schema!(Between, |_generator| json_schema!({
    "type": "array",
    "items": { "type": "string" },
    "minItems": 2,
    "examples": [["server", "client"]],
}));
