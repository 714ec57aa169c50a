//! Settings with a fixed list of values, and their names in scenario files.

use bentpipe_types::words;

words! {
    /// Computation of the retransmission timeout from the round-trip times.
    #[derive(Default)]
    RtoRule {
        /// One sample per round trip; the larger of `minimum_rto` and SRTT + 4 RTTVAR (RFC 6298).
        Rfc6298 = "rfc6298",
        /// A sample per acknowledgment; SRTT plus the larger of `minimum_rto` and the largest
        /// deviation of the last round trips.
        #[default]
        Linux = "linux",
    }
}

words! {
    /// Start of the retransmission timer.
    #[derive(Default)]
    RtoFrom {
        /// The last acknowledgment of new data (RFC 6298 section 5.3).
        #[default]
        Acknowledgment = "acknowledgment",
        /// Transmission of the oldest outstanding segment, as if each had its own timer (RFC 793).
        OldestSegment = "oldest-segment",
    }
}

words! {
    /// Explicit congestion notification (RFC 3168).
    #[schemars(rename = "Ecn")]
    #[derive(Default)]
    EcnMode {
        /// Never used.
        Off = "off",
        /// Used if the other end requests it: Linux's default.
        #[default]
        Accept = "accept",
        /// Requested by the opening end, too.
        Request = "request",
    }
}

words! {
    /// Path MTU discovery.
    #[derive(Default)]
    PathMtuDiscovery {
        /// None. (Packets too long for a link are lost, unless it has `fragment`.)
        Off = "off",
        /// By ICMP errors of routers (RFC 1191): Linux's default.
        #[default]
        Icmp = "icmp",
        /// As `icmp`, and black hole detection: shorter segments after repeated timeouts
        /// (RFC 4821 section 7.7).
        BlackHole = "black-hole",
        /// As `black-hole`, and a search in any case, from `base_mss` on (RFC 4821).
        Probe = "search",
    }
}

words! {
    /// Congestion window after an idle period.
    #[derive(Default)]
    IdleRestart {
        /// Unchanged.
        Off = "off",
        /// Reduced to the initial window, if it was larger (RFC 5681 section 4.1).
        RestartWindow = "restart-window",
        /// Halved for every timeout that has passed, down to the initial window (RFC 2861), as in
        /// Linux.
        #[default]
        Decay = "decay",
    }
}

words! {
    /// Partial acknowledgments that restart NewReno's retransmission timer (RFC 6582 section 4).
    #[schemars(rename = "NewReno")]
    #[derive(Default)]
    NewRenoKind {
        /// Only the first: many losses end in a timeout and slow start.
        #[default]
        Impatient = "impatient",
        /// Each: many losses are repaired at one per round trip.
        SlowButSteady = "slow-but-steady",
    }
}

words! {
    /// A loss recovery algorithm.
    #[schemars(rename = "Recovery")]
    #[derive(Default)]
    RecoveryKind {
        /// Fast retransmit and fast recovery, one loss at a time (RFC 5681 section 3.2).
        Reno = "reno",
        /// Stays in recovery until all data sent before it is acknowledged, with one retransmission
        /// per round trip (RFC 6582).
        NewReno = "newreno",
        /// Detects each lost segment from SACK blocks (RFC 6675), and with `rack` from send times
        /// (RFC 8985).
        #[default]
        Sack = "sack",
        /// FACK: considers everything below the highest SACKed segment lost (Mathis and Mahdavi
        /// 1996).
        Fack = "fack",
    }
}
