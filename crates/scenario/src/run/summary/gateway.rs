//! The fields that the counters of gateways become in results, for the schema: which of them a gateway has, its kind and its
//! settings say. A test compares them with what runs print.

use schemars::JsonSchema;

/// Declares tables of the schema: every counter is a number that is absent where a gateway does not count it.
macro_rules! counters {
    ($($(#[$about:meta])* $table:ident { $($(#[$what:meta])* $counter:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "the counters themselves are in a map")]
            pub(super) struct $table {
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
    /// What a gateway has counted.
    GatewayCounters {
        /// Connections, by what became of them.
        connections: GatewayConnections,
        /// Bytes that have arrived from one side, and that the other side has not acknowledged.
        bytes_held: GatewayBytes,
        /// Bytes of memory that connections may claim: what a split gateway holds, and the windows that it offers.
        bytes_promised: GatewayBytes,
        /// Packets of a split gateway.
        packets: GatewayPackets,
        /// The parts of split connections over `facing`, or the persistent connections that carry them.
        facing: GatewayPart,
        /// The parts of split connections towards the hosts.
        hosts: GatewayPart,
        /// The persistent connections of a split gateway with `multiplex`.
        multiplex: GatewayMultiplex,
        /// What a hybrid gateway sends to its hosts.
        to_host: GatewayToHost,
        /// What a hybrid gateway receives from servers.
        from_server: GatewayFromServer,
        /// Acknowledgments at a hybrid gateway.
        acknowledgments: GatewayAcknowledgments,
        /// Packets that a hybrid gateway forwarded and did nothing else with.
        packets_passed: u64,
        /// Packets that a hybrid gateway's processor had no room for (`processing`).
        packets_dropped: u64,
        /// The crashes of a gateway with `crashes`.
        crashes: GatewayCrashes,
    }

    /// A gateway's connections, by what became of them.
    GatewayConnections {
        /// Connections that were split.
        split: u64,
        /// Connections that passed unsplit, since they belong to no class that is split.
        passed: u64,
        /// Connections that passed for want of memory; of a hybrid gateway, beyond its most.
        refused: u64,
        /// Connections that are open at the end.
        open: u64,
        /// Most connections that were open at once.
        open_max: u64,
        /// Connections that the other side refused.
        refused_by_host: u64,
        /// Connections that the other side did not answer.
        unreachable: u64,
        /// New connections between the ends of one in TIME-WAIT.
        followed: u64,
        /// Connections that were reset after `idle_timeout`.
        idle: u64,
        /// Connections of which one part was reset because the other had failed.
        aborted: u64,
        /// Connections that a hybrid gateway acknowledged for.
        tracked: u64,
        /// Connections that a hybrid gateway gave up, since the host made no progress.
        given_up: u64,
        /// Connections of a hybrid gateway that were reset.
        reset: u64,
    }

    /// Bytes at a gateway.
    GatewayBytes {
        /// At the end.
        now: u64,
        /// At most.
        max: u64,
        /// At most of one connection.
        max_of_one: u64,
    }

    /// The packets of a split gateway.
    GatewayPackets {
        /// Packets of connections that are split.
        split: u64,
        /// Packets that were forwarded as they are.
        passed: u64,
        /// Packets that the processor had no room for (`processing`).
        dropped: u64,
        /// Packets of the side that opens a connection that came before it was answered.
        early: u64,
        /// ICMP errors about segments of the gateway's own.
        icmp_errors: u64,
    }

    /// The connections of a split gateway on one side.
    GatewayPart {
        /// Bytes that the other end has acknowledged.
        bytes_delivered: u64,
        /// These bytes in bit/s, over the time of the run.
        goodput_bps: f64,
        /// Segments with payload sent, retransmissions included.
        segments_sent: u64,
        /// Segments with payload sent again.
        segments_retransmitted: u64,
        /// Retransmission timeouts.
        timeouts: u64,
    }

    /// The persistent connections of a split gateway with `multiplex`.
    GatewayMultiplex {
        /// Persistent connections at the end.
        connections: u64,
        /// Persistent connections that were opened.
        opened: u64,
        /// Persistent connections that failed.
        failed: u64,
        /// Those of them that were given up since nothing came on them.
        silent: u64,
        /// Hosts' connections that were reset with any of them.
        reset: u64,
    }

    /// What a hybrid gateway sends to its hosts.
    GatewayToHost {
        /// Segments sent for the first time.
        segments: u64,
        /// Segments sent again.
        retransmissions: u64,
        /// Retransmission timeouts.
        timeouts: u64,
        /// Segments sent beyond the window that the host advertised.
        beyond_window: u64,
        /// Parts of segments that were cut, since the path takes no longer packets.
        parts: u64,
        /// ICMP errors about what was sent.
        icmp_errors: u64,
        /// Probes of closed windows.
        window_probes: u64,
    }

    /// What a hybrid gateway receives from servers.
    GatewayFromServer {
        /// Segments that it had already.
        duplicates: u64,
        /// Segments that came before an earlier one.
        out_of_order: u64,
        /// Segments for which there was no room.
        no_room: u64,
    }

    /// Acknowledgments at a hybrid gateway.
    GatewayAcknowledgments {
        /// Acknowledgments that it sent to servers on behalf of hosts.
        made: u64,
        /// Acknowledgments of hosts that it did not forward.
        consumed: u64,
    }

    /// The crashes of a gateway.
    GatewayCrashes {
        /// Crashes so far.
        count: u64,
        /// Connections that were lost in them.
        connections_lost: u64,
        /// Packets that were lost in them, and that reached the gateway while it was down.
        packets_lost: u64,
    }
}
