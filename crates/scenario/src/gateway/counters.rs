//! The fields of gateway counters in results, for the schema. Kind and settings of a gateway
//! determine which of them it has. A test compares them with the results of runs.

use schemars::JsonSchema;

/// Declares tables of the schema: every counter is a number that is absent if a gateway does not
/// count it.
macro_rules! counters {
    ($($(#[$about:meta])* $table:ident { $($(#[$what:meta])* $counter:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "the counters themselves are in a map")]
            pub(crate) struct $table {
                $(
                    $(#[$what])*
                    #[serde(skip_serializing_if = "Option::is_none")]
                    $counter: Option<$type>,
                )*
            }
        )*
    };
}

counters! {
    /// Counters of a gateway.
    GatewayCounters {
        /// Connections by outcome.
        connections: GatewayConnections,
        /// Bytes received on one side and not yet acknowledged on the other.
        bytes_held: GatewayBytes,
        /// Bytes of memory that connections may use: the data that a split gateway holds, and the
        /// windows that it advertises.
        bytes_promised: GatewayBytes,
        /// Packets of a split gateway.
        packets: GatewayPackets,
        /// Connections over `facing` that are parts of split connections, or the persistent
        /// connections that carry them.
        facing: GatewayPart,
        /// Connections to the hosts that are parts of split connections.
        hosts: GatewayPart,
        /// Persistent connections of a split gateway with `multiplex`.
        multiplex: GatewayMultiplex,
        /// Segments that a hybrid gateway sends to its hosts.
        to_host: GatewayToHost,
        /// Segments that a hybrid gateway receives from servers.
        from_server: GatewayFromServer,
        /// Acknowledgments at a hybrid gateway.
        acknowledgments: GatewayAcknowledgments,
        /// Packets that a hybrid gateway forwarded unchanged.
        packets_passed: u64,
        /// Packets that a hybrid gateway's processor dropped at its full queue (`processing`).
        packets_dropped: u64,
        /// Crashes of a gateway with `crashes`.
        crashes: GatewayCrashes,
        /// Outside addresses of a translator ("nat").
        addresses: GatewayAddresses,
    }

    /// Outside addresses of a translator.
    GatewayAddresses {
        /// Changes of the address.
        changes: u64,
        /// Connections that met another address than their own.
        connections_broken: u64,
        /// Flows that got another address: datagrams, and connections that were opened again with
        /// the same ports.
        mappings_renewed: u64,
        /// Packets of the earlier address.
        packets_lost: u64,
    }

    /// Connections of a gateway, by outcome.
    GatewayConnections {
        /// Connections that were split.
        split: u64,
        /// Connections that passed unsplit, because `only` or `except` exclude them.
        passed: u64,
        /// Connections that passed unsplit for lack of memory; for a hybrid gateway, above
        /// `connections`.
        refused: u64,
        /// Those refused since too many connections were half-open, or too many of one source
        /// open (`bentpipe-gateway`).
        refused_half_open: u64,
        /// Half-open connections given up for newer ones (`bentpipe-gateway`).
        half_open_given_up: u64,
        /// Connections that are half-open at the end (`bentpipe-gateway`).
        half_open: u64,
        /// Connections that are open at the end.
        open: u64,
        /// Maximum number of open connections.
        open_max: u64,
        /// Connections that the other side refused.
        refused_by_host: u64,
        /// Connections that the other side did not answer.
        unreachable: u64,
        /// New connections that reuse the addresses and ports of one in TIME-WAIT.
        followed: u64,
        /// Connections that were reset after `idle_timeout`.
        idle: u64,
        /// Connections of which one side was reset because the other side had failed.
        aborted: u64,
        /// Connections for which a hybrid gateway acknowledged.
        tracked: u64,
        /// Connections that a hybrid gateway gave up because the host made no progress.
        given_up: u64,
        /// Connections of a hybrid gateway that were reset.
        reset: u64,
    }

    /// Bytes at a gateway.
    GatewayBytes {
        /// At the end.
        now: u64,
        /// Maximum.
        max: u64,
        /// Maximum of a single connection.
        max_of_one: u64,
    }

    /// Packets of a split gateway.
    GatewayPackets {
        /// Packets of split connections.
        split: u64,
        /// Packets that were forwarded unchanged.
        passed: u64,
        /// Packets that the processor dropped at its full queue (`processing`).
        dropped: u64,
        /// Packets from the side that opens a connection that arrived before the gateway had
        /// answered it.
        early: u64,
        /// ICMP errors about segments that the gateway sent.
        icmp_errors: u64,
        /// Packets that a rate limit dropped, since they would have waited too long
        /// (`rate_limits`).
        over_rate: u64,
        /// Packets whose data was dropped, since more than `memory` was reserved
        /// (`bentpipe-gateway`).
        over_memory: u64,
    }

    /// Connections of a split gateway on one side.
    GatewayPart {
        /// Bytes that the peer has acknowledged.
        bytes_delivered: u64,
        /// These bytes in bit/s, averaged over the run.
        goodput_bps: f64,
        /// Segments with payload sent, retransmissions included.
        segments_sent: u64,
        /// Segments with payload retransmitted.
        segments_retransmitted: u64,
        /// Retransmission timeouts.
        timeouts: u64,
    }

    /// Persistent connections of a split gateway with `multiplex`.
    GatewayMultiplex {
        /// Persistent connections at the end.
        connections: u64,
        /// Persistent connections that were opened.
        opened: u64,
        /// Persistent connections that failed.
        failed: u64,
        /// Persistent connections that failed because nothing arrived on them.
        silent: u64,
        /// Connections of hosts that were reset with a persistent connection.
        reset: u64,
    }

    /// Segments that a hybrid gateway sends to its hosts.
    GatewayToHost {
        /// Segments sent for the first time.
        segments: u64,
        /// Retransmissions.
        retransmissions: u64,
        /// Retransmission timeouts.
        timeouts: u64,
        /// Segments sent beyond the window that the host advertised.
        beyond_window: u64,
        /// Parts into which segments were cut because the path does not take longer packets.
        parts: u64,
        /// ICMP errors about segments that were sent.
        icmp_errors: u64,
        /// Probes of a zero window.
        window_probes: u64,
    }

    /// Segments that a hybrid gateway receives from servers.
    GatewayFromServer {
        /// Duplicates of data that it already had.
        duplicates: u64,
        /// Segments that arrived before an earlier one.
        out_of_order: u64,
        /// Segments that did not fit in its memory.
        no_room: u64,
    }

    /// Acknowledgments at a hybrid gateway.
    GatewayAcknowledgments {
        /// Acknowledgments that it sent to servers on behalf of hosts.
        made: u64,
        /// Acknowledgments of hosts that it did not forward.
        consumed: u64,
    }

    /// Crashes of a gateway.
    GatewayCrashes {
        /// Number of crashes so far.
        count: u64,
        /// Connections that were lost in crashes.
        connections_lost: u64,
        /// Packets that were lost in crashes, or that arrived while the gateway was down.
        packets_lost: u64,
    }
}
