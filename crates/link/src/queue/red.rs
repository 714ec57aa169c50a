//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).

use bentpipe_types::{Bytes, Ecn, PacketRef, Span, Time};

use super::{Backlog, Limit, QueueCtx, QueueDiscipline, Verdict, Waiting};
use crate::Tally;

/// Unit of a queue's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Packets: all have the same drop probability.
    Packets,
    /// Bytes: the drop probability is proportional to the length (section 4, last paragraphs).
    Bytes,
}

/// Settings of a RED queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedSettings {
    /// Limit of the queue, whatever the average.
    pub limit: Limit,
    /// Unit of the thresholds.
    pub measure: Measure,
    /// min_th: below this average nothing is dropped.
    pub minimum_threshold: f64,
    /// max_th: at this average every packet is dropped, or with `gentle` a share of max_p.
    pub maximum_threshold: f64,
    /// max_p: share of packets dropped just below max_th.
    pub maximum_probability: f64,
    /// w_q: weight of a sample in the average.
    pub weight: f64,
    /// Whether the share grows from max_p to 1 between max_th and twice max_th ("Recommendation on
    /// using the gentle variant of RED", Floyd, March 2000).
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped, below max_th.
    pub ecn: bool,
    /// A typical packet length, which determines how fast the average decreases while idle.
    pub mean_packet: Bytes,
    /// Its transmission time: the paper's s.
    pub mean_transmission: Span,
}

/// A RED queue.
#[derive(Debug)]
pub struct Red {
    settings: RedSettings,
    waiting: Waiting,
    average: f64,
    /// Arrivals since the last drop or mark, in the unit of the thresholds, or `None` below min_th:
    /// the paper's -1.
    count: Option<u64>,
    /// Start of the idle period: the paper's q_time.
    idle_since: Option<Time>,
    early: u64,
    forced: u64,
    marked: u64,
}

/// Decision about a packet before the limit is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Detection {
    Pass,
    Early,
    Forced,
}

impl Red {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(settings: RedSettings) -> Self {
        Self {
            settings,
            waiting: Waiting::default(),
            average: 0.0,
            count: None,
            // The average of an initially empty queue is 0, however long it has been empty.
            idle_since: None,
            early: 0,
            forced: 0,
            marked: 0,
        }
    }

    /// Returns the average queue length in the unit of the thresholds.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    fn length(&self) -> f64 {
        match self.settings.measure {
            Measure::Packets => self.waiting.packets() as f64,
            Measure::Bytes => self.waiting.bytes().get() as f64,
        }
    }

    /// Updates the average (figure 2 of the paper), as if packets had arrived at an empty queue
    /// while idle.
    /// RFC 3168 section 5.1: marks depend on the average, not on the instantaneous length.
    fn update_average(&mut self, now: Time) {
        let weight = self.settings.weight;
        if let Some(since) = self.idle_since.take() {
            let usual = self.settings.mean_transmission.as_secs_f64();
            let idle = now.since(since).as_secs_f64();
            if usual > 0.0 {
                self.average *= libm::pow(1.0 - weight, libm::floor(idle / usual));
            }
        }
        self.average += weight * (self.length() - self.average);
    }

    /// p_b: the share to be dropped at this average; none at 0, all at 1.
    fn share(&self) -> f64 {
        let s = &self.settings;
        if self.average < s.minimum_threshold {
            0.0
        } else if self.average < s.maximum_threshold {
            s.maximum_probability * (self.average - s.minimum_threshold)
                / (s.maximum_threshold - s.minimum_threshold)
        } else if s.gentle && self.average < 2.0 * s.maximum_threshold {
            let beyond = (self.average - s.maximum_threshold) / s.maximum_threshold;
            s.maximum_probability + (1.0 - s.maximum_probability) * beyond
        } else {
            1.0
        }
    }

    fn detect(&mut self, length: Bytes, cx: &mut QueueCtx<'_>) -> Detection {
        self.update_average(cx.now);
        let share = self.share();
        if self.average < self.settings.minimum_threshold || self.waiting.packets() == 0 {
            // The queue is empty: a drop would leave the link idle. (ns-2: unless two are queued.)
            self.count = None;
            return Detection::Pass;
        }
        if share >= 1.0 {
            self.count = Some(0);
            return Detection::Forced;
        }
        let Some(count) = self.count else {
            // The first packet above min_th: the paper's count goes from -1 to 0, and p_a is p_b.
            self.count = Some(0);
            return self.draw(share, 0, length, cx);
        };
        let count = match self.settings.measure {
            Measure::Packets => count + 1,
            Measure::Bytes => count + length.get(),
        };
        self.count = Some(count);
        self.draw(share, count, length, cx)
    }

    /// p_a spreads the drops: the number of packets between two drops is uniform (section 7, method
    /// 2).
    ///
    /// In bytes, a packet's drop probability is to be proportional to its length. The paper applies
    /// the length to p_b and counts packets; then with time since the last drop a long packet's
    /// probability reaches 1 first, so that nearly always a long one is dropped. The author's queue
    /// in ns-2 (`REDQueue::modify_p`) counts bytes and applies the length to p_a, as here.
    fn draw(&mut self, share: f64, count: u64, length: Bytes, cx: &mut QueueCtx<'_>) -> Detection {
        let (usual, length) = match self.settings.measure {
            Measure::Packets => (1.0, 1.0),
            Measure::Bytes => {
                let usual = self.settings.mean_packet.get().max(1) as f64;
                (usual, length.get() as f64)
            }
        };
        let spread = count as f64 / usual * share;
        let probability = if spread < 1.0 {
            share / (1.0 - spread) * (length / usual)
        } else {
            1.0
        };
        if cx.random.happens(probability) {
            self.count = Some(0);
            Detection::Early
        } else {
            Detection::Pass
        }
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length();
        match self.detect(length, cx) {
            Detection::Pass => {}
            Detection::Early => {
                let capable = cx.packets.get(packet).ecn() != Ecn::NotCapable;
                // RFC 3168 section 5: marked only where it would be dropped for congestion; a mark
                // of another router stays (RFC 3168 section 12).
                if self.settings.ecn && capable {
                    cx.packets.get_mut(packet).set_ecn(Ecn::Congestion);
                    self.marked += 1;
                } else {
                    self.early += 1;
                    return Verdict::Dropped;
                }
            }
            Detection::Forced => {
                self.forced += 1;
                return Verdict::Dropped;
            }
        }
        self.waiting
            .offer(packet, length, self.settings.limit, cx.idle)
    }

    fn idle_since(&mut self, since: Time) {
        // Before the first packet there is no average to decrease.
        self.idle_since = Some(since);
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.waiting.pop()
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_early", self.early);
        each(None, "dropped_above_threshold", self.forced);
        each(None, "marked", self.marked);
    }
}

#[cfg(test)]
mod tests;
