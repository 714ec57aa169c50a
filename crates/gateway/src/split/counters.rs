//! Counters of a split gateway, for results and probes.

use std::mem;

use bentpipe_tcp::{Payload, Rings, Socket};
use bentpipe_types::{Port, RoundTripHistogram, StreamCheck};

use super::leg_totals::Sums;
use super::split_connection::SplitConnection;

/// Events counted since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Connections split, in total.
    pub(super) split: u64,
    /// Connections that have not ended.
    pub(super) open: u64,
    /// Largest value of `open`.
    pub(super) open_maximum: u64,
    /// Connections forwarded because their class is not split.
    pub(super) passed: u64,
    /// Connections forwarded for want of memory, or by the limits of half-open connections.
    pub(super) refused: u64,
    /// Connections forwarded because the gateway is about to end.
    pub(super) passed_draining: u64,
    /// Those of them that the limits of half-open connections and of sources have refused.
    pub(super) refused_half_open: u64,
    /// Half-open connections given up for newer ones.
    pub(super) given_up: u64,
    /// Payloads dropped for want of memory.
    pub(super) payloads_dropped: u64,
    /// Connections that the other host has refused.
    pub(super) refused_by_host: u64,
    /// Connections that the other host has not answered.
    pub(super) unreachable: u64,
    /// Packets from the opening host before its SYN was answered: the answer took another path.
    pub(super) early_packets: u64,
    /// Packets of hosts that have received an answer the gateway has not seen.
    pub(super) answers_around: u64,
    /// Connections that replaced one in TIME-WAIT between the same endpoints.
    pub(super) replaced: u64,
    /// Connections reset after the idle timeout.
    pub(super) idle: u64,
    /// Connections of which one side was reset because the other had failed.
    pub(super) aborted: u64,
    /// Trunks opened.
    pub(super) trunks_opened: u64,
    /// Trunks that have failed.
    pub(super) trunks_failed: u64,
    /// Trunks given up because the peer was silent.
    pub(super) trunks_silent: u64,
    /// Multiplexed connections reset because their trunk failed.
    pub(super) carried_reset: u64,
    /// ICMP errors about segments of legs.
    pub(super) icmp_errors: u64,
    /// Round-trip times over the facing link and to the hosts, of each leg when it ends and, while
    /// it is active, at each check for idleness.
    pub(super) round_trips: [RoundTripHistogram; 2],
    pub(super) packets_split: u64,
    pub(super) packets_passed: u64,
    pub(super) packets_dropped: u64,
    /// Totals of legs that no longer exist.
    pub(super) closed_legs: Sums,
}

impl Counters {
    /// Records that all open connections are lost, and returns their number. `sums` are the totals
    /// of their legs.
    pub(super) fn connections_lost(&mut self, mut sums: Sums) -> u64 {
        sums.facing.close();
        sums.hosts.close();
        self.closed_legs.add(&sums);
        mem::take(&mut self.open)
    }

    pub(super) fn opened(&mut self) {
        self.split += 1;
        self.open += 1;
        self.open_maximum = self.open_maximum.max(self.open);
    }

    pub(super) fn ended(&mut self, aborted: bool) {
        self.open -= 1;
        self.aborted += u64::from(aborted);
    }

    /// Takes back the count of a connection that is opened in another way instead.
    pub(super) fn uncount(&mut self) {
        self.split -= 1;
    }

    /// Adds a closed trunk to the totals of the past.
    pub(super) fn trunk_ended(&mut self, trunk: &Socket<Rings>) {
        record_round_trip(&mut self.round_trips, trunk, true);
        self.closed_legs.add_leg(trunk, true, true);
    }

    /// Adds an ended multiplexed connection to the totals of the past: its leg, and the result of
    /// checking its stream.
    pub(super) fn multiplexed_ended<P: Payload>(
        &mut self,
        leg: Option<&Socket<P>>,
        check: StreamCheck,
    ) {
        self.closed_legs.check.ranges += check.ranges;
        self.closed_legs.check.mismatches += check.mismatches;
        if let Some(leg) = leg {
            record_round_trip(&mut self.round_trips, leg, false);
            self.closed_legs.add_leg(leg, false, true);
        }
    }

    pub(super) fn removed<P: Payload>(&mut self, pair: &SplitConnection<P>, facing: Port) {
        debug_assert!(pair.has_ended, "it has windows");
        self.closed_legs.add(&Sums::of(pair, facing));
    }
}

/// Adds the smoothed round-trip times of a connection's legs to the histograms.
pub(super) fn record_round_trips<P: Payload>(
    histograms: &mut [RoundTripHistogram; 2],
    pair: &SplitConnection<P>,
    facing: Port,
) {
    for (leg, port) in pair.legs.iter().zip(pair.ports) {
        if let Some(leg) = leg {
            record_round_trip(histograms, leg, port == facing);
        }
    }
}

fn record_round_trip<P: Payload>(
    histograms: &mut [RoundTripHistogram; 2],
    leg: &Socket<P>,
    is_facing: bool,
) {
    if let Some(round_trip) = leg.connection().smoothed_rtt() {
        histograms[usize::from(!is_facing)].record(round_trip);
    }
}
