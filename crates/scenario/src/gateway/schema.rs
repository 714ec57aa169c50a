//! `[gateways.NAME]`.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::gateway::kinds::gateways;
use crate::node::processing::ProcessingFile;
use crate::quantity::port::PortRange;
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::tcp::schema::TcpFile;

/// Defines the keys of all kinds of gateway.
macro_rules! schema {
    (
        keys {
            $($(#[$key_doc:meta])* $key:ident: $type:ty,)*
        }
        kinds {
            $($(#[$doc:meta])* $kind:ident = $name:literal: $settings:ident, keys [$($own:ident)*];)+
        }
    ) => {
        /// A gateway: it forwards packets between its links, and may do more.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct GatewayFile {
            /// Creates this many gateways, NAME-1 to NAME-count, as for hosts. A link that names
            /// NAME is then created once for each of them. If both ends of a link are counted, it
            /// joins the first with the first, the second with the second and so on. `facing` may
            /// name such a link: each gateway faces its own. Default: one gateway, NAME.
            #[schemars(range(min = 1, max = 60_000))]
            pub count: Option<i64>,
            /// Whether the gateway only routes, splits connections, or is a hybrid gateway.
            /// Default: "router".
            #[serde(default = "router")]
            pub kind: GatewayKind,
            $($(#[$key_doc])* pub $key: Option<$type>,)*
        }

        impl GatewayFile {
            /// Returns the keys that the file gives, except `count` and `kind`.
            pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($key), self.$key.is_some()),)*]
                    .into_iter()
                    .filter_map(|(key, given)| given.then_some(key))
            }
        }

        words! {
            /// How a gateway treats the packets it forwards.
            GatewayKind {
                $($(#[$doc])* $kind = $name,)+
            }
        }

        impl GatewayKind {
            /// Returns the keys that apply to this kind, except `count` and `kind`.
            #[must_use]
            pub fn keys(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$(stringify!($own),)*],)+
                }
            }
        }
    };
}

gateways!(schema);

fn router() -> GatewayKind {
    GatewayKind::Router
}

words! {
    /// How far beyond a host's window a hybrid gateway sends.
    AnticipationName {
        /// Without a limit: by the time the data arrive, the window has advanced.
        Unlimited = "unlimited",
        /// Not beyond the window.
        Strict = "strict",
    }
}

words! {
    /// When a gateway answers the side that opens a connection.
    SetUp {
        /// After the other side has answered, so that a refusal there is a refusal here.
        EndToEnd = "end-to-end",
        /// At once. The client may send a round trip earlier; if the server refuses, the connection
        /// is reset.
        Early = "early",
    }
}

words! {
    /// When a gateway acknowledges the end of a stream (FIN) to its sender.
    Close {
        /// After the other side has acknowledged it, that is, received everything.
        EndToEnd = "end-to-end",
        /// At once, as most splitting gateways do: the sender may close while bytes are still in
        /// transit.
        Early = "early",
    }
}

/// Selects connections. If several keys are given, a connection must match all of them; `addresses`
/// and `addresses_file` are one list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Destination ports of connections: 80, or "8000-8999". Default: all.
    pub ports: Option<Vec<PortRange>>,
    /// Hosts at either end. Default: all.
    pub hosts: Option<Vec<String>>,
    /// `bentpipe-gateway`: addresses and prefixes at either end, such as "192.0.2.7" and
    /// "2001:db8::/32". Simulated hosts have no addresses: `only` then takes all of them, and
    /// `except` and `rate_limits` none. Default: all.
    pub addresses: Option<Vec<String>>,
    /// `bentpipe-gateway`: a file with more addresses and prefixes, one in a line, by its path from
    /// the scenario file's folder. A `#` begins a comment. Default: none.
    pub addresses_file: Option<String>,
}

/// A limit of the rate of packets. If both `class` and `dscp` are given, a packet must match both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitFile {
    /// Packets of these connections, and other packets with such ports and hosts, in both
    /// directions. Default: all packets.
    pub class: Option<ClassFile>,
    /// `bentpipe-gateway`: packets with these differentiated services code points, 0 to 63. The
    /// packets of simulated hosts have 0. Default: all.
    pub dscp: Option<Vec<u8>>,
    /// Rate of the IP packets of all matching connections together, in each direction.
    pub rate: Rate,
    /// Longest time that a packet waits. Packets that would wait longer are dropped. At most
    /// "10 s". Default: "250 ms".
    pub longest_wait: Option<Length>,
}

/// A crash of a gateway.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashFile {
    /// Time since the start of the run.
    pub at: Length,
    /// Downtime: packets that arrive meanwhile are lost. Default: "0 s", the gateway restarts at
    /// once.
    pub lasts: Option<Length>,
}
