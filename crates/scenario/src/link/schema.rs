//! `[links.NAME]`.

use std::fmt;

use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Unexpected, Visitor};

use crate::access::schema::AccessFile;
use crate::acks::schema::AcksFile;
use crate::acm::schema::AcmFile;
use crate::changes::schema::{FadingFile, OutageFile, ReorderingFile, StepFile, TraceFile};
use crate::link::compression::Compression;
use crate::link::framing::LinkFraming;
use crate::orbit::schema::PathFile;
use crate::quantity::count::QueueLimit;
use crate::quantity::mtu::Mtu;
use crate::quantity::probability::Probability;
use crate::quantity::rate::Rate;
use crate::quantity::redundancy::Redundancy;
use crate::quantity::scalar::inline_schema;
use crate::quantity::time::{Delay, Length};
use crate::queue::schema::QueueFile;

/// Defines a table that has the keys of a direction in addition to its own: its first keys, the
/// basic keys of a direction, more of its own, the other keys of a direction, and its last keys.
/// Links and directions thus share the keys and their descriptions.
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
            /// Rate of the transmitter in bit/s, IP headers included. Required for the link or for
            /// each direction, unless `schedule` or `traces` set it from the start, or `acm`
            /// determines it.
            pub rate: Option<Rate>,
            /// Propagation delay in one direction. Up to 1 h; a geostationary hop takes 240 to 280
            /// ms. Required for the link or for each direction, unless `schedule` or `traces` set
            /// it from the start.
            pub delay: Option<Delay>,
            $($then)*
            /// The queue in front of the transmitter.
            pub queue: Option<QueueFile>,
            /// Losses in transit. Default: none.
            pub errors: Option<ErrorsFile>,
            /// Bits on the air per bit of packet, for coding and framing: "16/15", or 1.0667.
            /// Default: 1.
            pub redundancy: Option<Redundancy>,
            /// Framing of packets: a kind, or a size such as "6 B" that is added to each packet
            /// instead (up to "1 kB"). With `compression`, "none" and "ethernet" add SLIP's byte to
            /// compressed headers (RFC 1144); "ppp" or a size is all framing that there is. MPE,
            /// ULE and GSE carry whole IP packets, without `compression`. Default: "none".
            pub framing: Option<LinkFraming>,
            /// Whether the direction may always send, or gets capacity from a hub. In a fade
            /// (`schedule`, `traces`, `fading`) with a hub, the same bits take more of the carrier.
            /// Default: it may always send.
            pub access: Option<AccessFile>,
            /// Reduces the number of acknowledgments on a slow link. Default: no reduction.
            pub acks: Option<AcksFile>,
            /// Header or data compression on this link. Default: "none".
            pub compression: Option<Compression>,
            /// Send all packets in an IP-in-IP tunnel from one end of the link to the other (RFC
            /// 2003), which adds 20 bytes to each. Default: false; with compaction, true.
            pub tunnel: Option<bool>,
            /// Changes of rate, delay and losses: steps with a time and new values. Before the
            /// first step that changes a value, the other keys set it.
            pub schedule: Option<Vec<StepFile>>,
            /// Period after which the schedule repeats. Default: its last step holds until the end.
            pub schedule_every: Option<Length>,
            /// Files with the changes of rate, delay and losses: recordings and tables.
            pub traces: Option<Vec<TraceFile>>,
            /// Adaptive coding and modulation: the attenuation in `schedule` or `traces` determines
            /// the rate, and outages. Default: none; the other keys set the rate.
            pub acm: Option<AcmFile>,
            /// Outages of the link, and their effect on packets.
            pub outages: Option<Vec<OutageFile>>,
            /// A link that alternates between clear and faded at random.
            pub fading: Option<FadingFile>,
            /// Share of packets that arrive twice.
            pub duplication: Option<Probability>,
            /// Share of packets that arrive with a wrong checksum: the receiver counts and discards
            /// them.
            pub corruption: Option<Probability>,
            /// Packets that are delayed, so that others overtake them.
            pub reordering: Option<ReorderingFile>,
            /// Whether packets keep their order when the delay becomes shorter: a packet then waits
            /// for those sent before it. false lets it overtake them. Default: true.
            pub in_order: Option<bool>,
            $($last)*
        }
    };
}

with_direction_keys! {
    /// A link: two one-way links, one in each direction. The keys of the link apply to both
    /// directions; `forward` and `return` override them for one direction.
    LinkFile {
        {
            /// The two nodes that it joins. Forward is from the first to the second. With
            /// `broadcast`, there may be more than one after the first.
            pub between: Between,
            /// A broadcast channel from the first node of `between` to all others, which may be
            /// counted hosts. Each packet is transmitted once. A packet to one
            /// receiver is delivered to that one; a packet to a group, to each receiver that leads
            /// to members. Random `errors` are independent at each receiver. Queue, changes and
            /// `lost_packets` belong to the channel, and are the same for all. It needs `one_way =
            /// true`: the opposite direction needs links of its own. Default: false.
            #[serde(default)]
            pub broadcast: bool,
            /// The link has the forward direction only; the opposite direction uses other links.
            /// Default: false.
            #[serde(default)]
            pub one_way: bool,
        }
        {
            /// MTU: the longest IP packet in either direction, without a tunnel's header. A router
            /// drops longer packets and sends an ICMP error (`icmp`). A host, or a gateway that
            /// ends connections at the link, does not send longer ones (as for an interface's MTU).
            /// "128 B" to "65535 B" ("65515 B" in a tunnel, whose header is in the packet, too), or
            /// a kind of network (gaid1998, table 1): "hyperchannel" 65535, "token-ring-16" 17914,
            /// "token-ring-4" 4464, "fddi" 4352, "ethernet" 1500, "ieee-802.3" 1492, "x.25" 576,
            /// "point-to-point" 296 B. Default: no limit; with `framing` "ethernet" or "ppp" 1500
            /// B, "mpe" 4080 B, "ule" 32756 B, which MPE and ULE do not exceed (less a tunnel's 20
            /// B).
            pub mtu: Option<Mtu>,
            /// The path of both directions over satellites: it determines their delay over time,
            /// in place of `delay`, and outages. Default: none.
            pub path: Option<PathFile>,
            /// Fragment packets longer than `mtu` (RFC 791): no sender uses shorter packets for
            /// this link, and no packet is refused. Fragments are queued, transmitted and lost one
            /// by one. They are reassembled at the destination of the packet: at the host, at a
            /// hybrid gateway, or at the end of the link's tunnel, whose outer packets are
            /// fragmented. Default: false.
            pub fragment: Option<bool>,
            /// Resolve the link address of the other end before packets are sent to it (RFC 826;
            /// with ip = "v6" by neighbour discovery, RFC 4861). Needs `framing = "ethernet"` in
            /// both directions. Default: addresses are known from the topology, as from a static
            /// table.
            pub arp: Option<ArpFile>,
        }
        {
            /// Settings of the direction from the first node to the second.
            pub forward: Option<DirectionFile>,
            /// Settings of the direction from the second node to the first.
            #[serde(rename = "return")]
            pub backward: Option<DirectionFile>,
        }
    }
}

with_direction_keys! {
    /// One direction of a link. Absent keys have the values of the link.
    #[derive(Default)]
    DirectionFile { {} {} {} }
}

/// Address resolution between the two ends of a link. A packet for an unknown address waits for the
/// reply to a request. The request is sent up to three times, 1 s apart; then the packets that wait
/// are dropped. Requests and replies are ordinary packets: they are queued, take transmission time
/// and may be lost.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArpFile {
    /// Lifetime of an address since it was last confirmed (RFC 1122 section 2.3.2.1). "1 s" to "24
    /// h". Default: "60 s".
    pub timeout: Option<Length>,
    /// Maximum number of packets that wait for an ARP reply; a further one drops the oldest. At
    /// least "1 packets" (RFC 1122 section 2.3.2.2). Default: "101 packets".
    pub queue: Option<QueueLimit>,
}

/// Losses in transit, after transmission: a bit error rate or a packet loss rate, and listed
/// packets in addition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorsFile {
    /// Probability that a bit is wrong, independently of the others; a packet with a wrong bit is
    /// lost. A packet of n bits survives with probability (1 - rate)^n: long packets are lost more
    /// often.
    pub bit_error_rate: Option<Probability>,
    /// Probability that a packet is lost, whatever its length.
    pub packet_loss_rate: Option<Probability>,
    /// Makes the losses of `packet_loss_rate` come in bursts with this mean number of packets
    /// (Gilbert and Elliott): 1 or more. For a loss rate p, the mean must be at least p / (1 - p).
    pub mean_burst_packets: Option<f64>,
    /// Share of packets lost during a burst. Default: 1, all of them.
    pub loss_in_burst: Option<Probability>,
    /// Share of packets lost between bursts. Default: 0, none.
    pub loss_between_bursts: Option<Probability>,
    /// Numbers of packets that are lost: [20, 21] loses the 20th and 21st that enter the link,
    /// counted from 1. Only in `forward` or `return`.
    pub lost_packets: Option<Vec<u64>>,
}

/// The nodes that a link joins.
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
