//! The table of the kinds of gateway. The code that reads, describes, resolves, reports, builds or
//! lists gateways, and what `predict` and `advise` know of them, follow from this table.

/// Passes the table to the macro `$then`. `keys` are the keys of all kinds, with the descriptions
/// that are the reference; `count` and `kind` apply to all kinds. Each entry of `kinds` is a kind:
/// its name in a scenario file, its description, which is the reference, its settings, and the
/// names of its keys. The settings implement [`GatewaySettings`](super::settings::GatewaySettings).
macro_rules! gateways {
    ($then:ident) => {
        $then! {
            keys {
                /// Send an ICMP error to the source of a packet that is too long for the next link
                /// (RFC 1191). false: the packet is dropped silently, as behind a filter, and the
                /// path is a black hole for it. Default: true.
                icmp: bool,
                /// The link that the gateway serves. A split gateway uses `tcp`'s settings for the
                /// connections over this link; the hosts of a hybrid gateway are behind it. The
                /// link ends at this gateway; of a pair of one-way links, it is the one on which
                /// the gateway sends. Required with "split" and "hybrid".
                facing: String,
                /// TCP of the connections over `facing`; for a hybrid gateway, how it sends to its
                /// hosts if not as in the paper. Defaults are those of a host, with two exceptions:
                /// buffers are twice the bandwidth-delay product of `facing` (the rate of its
                /// faster direction times the sum of both delays), and at least 128 KiB; and
                /// Nagle's algorithm is off.
                tcp: TcpFile,
                /// TCP of the connections on the side of the hosts. Defaults: as for `tcp`.
                host_tcp: TcpFile,
                /// When the gateway answers the side that opens a connection. Default:
                /// "end-to-end".
                set_up: SetUp,
                /// When the gateway acknowledges the end of a stream (FIN) to its sender. Default:
                /// "end-to-end".
                close: Close,
                /// For a split gateway: total buffer memory of all connections. One connection gets
                /// at most half of what is left, in each direction. Connections that find too
                /// little memory pass unsplit. For a hybrid gateway: most bytes stored at once.
                /// Default: "256 MiB".
                memory: Size,
                /// Split only these connections; others pass unchanged. Default: all.
                only: ClassFile,
                /// Do not split these connections. Default: none.
                except: ClassFile,
                /// Most connections of one source that are split at a time: of an IPv4 address, an
                /// IPv6 /64 prefix, or a simulated host. Further ones pass unsplit and are counted
                /// as refused. It cannot be combined with `multiplex`. Default: as many as take as
                /// much of `memory` as is left for others.
                source_connections: u32,
                /// Limits of the rate at which the gateway takes packets, in each direction. The
                /// first one that matches a packet applies. Default: none.
                rate_limits: Vec<RateLimitFile>,
                /// Time that the gateway's processor takes for each packet (an IP service rate),
                /// for any kind of gateway. Default: no time.
                processing: ProcessingFile,
                /// Start each connection over `facing` with the congestion window and the
                /// slow-start threshold of earlier connections (RFC 9040). Default: false.
                warm_path: bool,
                /// Multiplex all connections between this gateway and the one at the other end of
                /// `facing` over this many persistent connections: 1 to 16. Both gateways must have
                /// the same number. A connection then opens without a handshake over that link, and
                /// starts with the congestion window of the persistent connection. A lost packet
                /// delays everything behind it on the same persistent connection. With `warm_path`
                /// the window is kept through idle times. Default: each connection has its own.
                multiplex: u32,
                /// Idle time after which the gateway resets a connection (a hybrid gateway forgets
                /// it). At least "1 s". Default: "124 min" (RFC 5382, requirement 5).
                idle_timeout: Length,
                /// Crashes: the gateway stops, and restarts without the state of any connection, as
                /// after a power cut or a restart of the process. They must be in order and must
                /// not overlap. Default: none.
                crashes: Vec<CrashFile>,
                /// Receive window that a hybrid gateway advertises to servers on behalf of its
                /// hosts. "2 kB" to "1 GB". Default: "64 kB".
                receive_buffer: Size,
                /// Most bytes of one connection that a hybrid gateway stores: unsent, or sent to
                /// the host and not yet acknowledged. Default: as `receive_buffer`, so that the
                /// advertised window shrinks as the store fills.
                store: Size,
                /// Longest time that a hybrid gateway delays an acknowledgment to a server, in the
                /// hope of sending it with other data. At most "500 ms". Default: "200 ms".
                ack_timeout: Length,
                /// Acknowledge at once after this many full segments. Default: only `ack_timeout`
                /// decides.
                ack_every: u32,
                /// How far beyond a host's advertised window a hybrid gateway sends. A zero window
                /// is always obeyed, and retransmissions stay within the window. Default:
                /// "unlimited".
                anticipation: AnticipationName,
                /// Instead of `anticipation`: send up to this multiple of the window. At least 1.
                window_factor: f64,
                /// Time after which a hybrid gateway retransmits what a host has not acknowledged.
                /// "10 ms" to "60 s". Default: "200 ms"; with `tcp`, adaptive. With a congestion
                /// window it is the minimum timeout and not a fixed one, because congestion control
                /// takes each timeout for a sign of congestion.
                retransmission_timeout: Length,
                /// Compute the retransmission timeout from round-trip times (RFC 6298). Default:
                /// true with `tcp`, else false.
                adaptive_timeout: bool,
                /// Use a congestion window for the `tcp` of a hybrid gateway. Default: true.
                congestion_window: bool,
                /// Time without progress after which a hybrid gateway gives up a host and informs
                /// the server. At least "1 s". Default: "120 s".
                give_up: Length,
                /// Most connections that a hybrid gateway handles; further ones pass unchanged. 1
                /// to 1000000. Default: 65536.
                connections: u32,
            }
            kinds {
                /// Forwards packets unchanged.
                Router = "router": RouterGateway, keys [icmp processing];

                /// Translates addresses at the operator's point of presence. When the path over
                /// satellites of `facing` changes its gateway, the outside address changes. TCP
                /// connections of the earlier address break: the next segment of the hosts behind
                /// `facing` is answered with a reset, and packets to them are lost. The next
                /// datagram of a host gets the new address. A "router" stands for an operator that
                /// keeps addresses by a tunnel to the point of presence.
                Nat = "nat": NatGateway, keys [facing];

                /// Splits each TCP connection whose SYN it sees into one connection on each side,
                /// with the addresses and ports of the hosts. Only the connection over `facing`
                /// needs settings for a satellite (karir1999, RFC 3135).
                Split = "split": SplitGateway, keys [
                    facing tcp host_tcp set_up close memory only except source_connections
                    rate_limits processing warm_path multiplex idle_timeout crashes
                ];

                /// Acknowledges on behalf of the hosts behind `facing`, which receive by satellite
                /// and send by another path, advertises a larger window than theirs to the servers,
                /// stores what they have not acknowledged and retransmits it: Asymmetric TCP/IP
                /// (gaid1998). Without `tcp` it retransmits when a timer expires, as in the paper,
                /// and has no congestion window; with `tcp`, it behaves as that TCP does.
                Hybrid = "hybrid": HybridGateway, keys [
                    facing tcp memory idle_timeout receive_buffer store ack_timeout ack_every
                    anticipation window_factor retransmission_timeout adaptive_timeout
                    congestion_window give_up connections processing crashes
                ];
            }
        }
    };
}
pub(crate) use gateways;
