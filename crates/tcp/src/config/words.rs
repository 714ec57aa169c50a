//! Settings that are one word of a list, by the names that scenario files give them.

use bentpipe_types::words;

words! {
    /// How the retransmission timeout follows from the measured round-trip times.
    #[derive(Default)]
    RtoRule {
        /// One sample a round trip; the larger of `minimum_rto` and SRTT + 4 RTTVAR (RFC 6298).
        Rfc6298 = "rfc6298",
        /// A sample for every acknowledgment; SRTT plus the larger of `minimum_rto` and the largest
        /// deviation of the last round trips.
        #[default]
        Linux = "linux",
    }
}

words! {
    /// What a retransmission timeout is counted from.
    #[derive(Default)]
    RtoFrom {
        /// The last acknowledgment of new data (RFC 6298 section 5.3).
        #[default]
        Acknowledgment = "acknowledgment",
        /// When the oldest segment outstanding left, as if each had its own timer (RFC 793).
        OldestSegment = "oldest-segment",
    }
}

words! {
    /// Explicit congestion notification (RFC 3168).
    #[schemars(rename = "Ecn")]
    #[derive(Default)]
    EcnMode {
        /// Never.
        Off = "off",
        /// Where the other end asks for it: Linux's default.
        #[default]
        Accept = "accept",
        /// The opening end asks for it, too.
        Request = "request",
    }
}

words! {
    /// How a connection learns how long packets may be.
    #[derive(Default)]
    PathMtuDiscovery {
        /// Not at all. (What is too long for a link is lost, unless it has `fragment`.)
        Off = "off",
        /// Routers say so (RFC 1191): Linux's default.
        #[default]
        Icmp = "icmp",
        /// And where segments go unanswered for long, shorter ones find out (RFC 4821 section 7.7).
        BlackHole = "black-hole",
        /// And a search finds out in any case, from `base_mss` on (RFC 4821).
        Probe = "search",
    }
}

words! {
    /// What counts as progress in congestion avoidance.
    #[schemars(rename = "CongestionAvoidance")]
    #[derive(Default)]
    AvoidanceKind {
        /// Each acknowledgment counts for one segment (RFC 5681 equation 3): with delayed
        /// acknowledgments, one segment more every two round trips.
        PerAcknowledgment = "per-acknowledgment",
        /// Acknowledged bytes count (RFC 3465): one segment more every round trip. Linux.
        #[default]
        ByteCounting = "byte-counting",
    }
}

words! {
    /// What becomes of the congestion window after an idle time.
    #[derive(Default)]
    IdleRestart {
        /// Nothing.
        Off = "off",
        /// It falls to the initial window, if it was larger (RFC 5681 section 4.1).
        RestartWindow = "restart-window",
        /// It is halved for every timeout that passed, down to the initial window (RFC 2861). Linux.
        #[default]
        Decay = "decay",
    }
}

words! {
    /// What restarts NewReno's retransmission timer (RFC 6582 section 4).
    #[schemars(rename = "NewReno")]
    #[derive(Default)]
    NewRenoKind {
        /// The first partial acknowledgment only: many losses end in a timeout and slow start.
        #[default]
        Impatient = "impatient",
        /// Each partial acknowledgment: many losses are repaired one a round trip.
        SlowButSteady = "slow-but-steady",
    }
}
