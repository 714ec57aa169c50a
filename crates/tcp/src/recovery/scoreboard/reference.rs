//! Reference implementation of the scoreboard, as RFC 6675 and RFC 8985 describe it: each operation
//! walks all segments.

use bentpipe_types::{Span, Time};

use super::{LostSegment, Transmission};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Record {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sent_at: Time,
    pub(super) order: u32,
    pub(super) sacked: bool,
    pub(super) lost: bool,
    pub(super) retransmitted: bool,
    pub(super) ever: bool,
    /// The buffer it was sent in, and the buffer it is in now.
    pub(super) buffer: u64,
    pub(super) part: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Naive {
    pub(super) records: Vec<Record>,
    pub(super) forward: u64,
    pub(super) delivered: u64,
    pub(super) transmissions: u32,
}

impl Naive {
    pub(super) fn acknowledge(&mut self, position: u64) {
        self.delivered = 0;
        let mut delivered = 0;
        self.records.retain_mut(|record| {
            let new = if record.sacked {
                0
            } else {
                position.clamp(record.start, record.end) - record.start
            };
            delivered += new;
            record.start = record.start.max(position.min(record.end));
            record.end > position
        });
        self.delivered = delivered;
        self.forward = self.forward.max(position);
    }

    pub(super) fn sack(&mut self, start: u64, end: u64) {
        for record in &mut self.records {
            if record.start >= start && record.end <= end && !record.sacked {
                record.sacked = true;
                record.lost = false;
                record.retransmitted = false;
                self.delivered += record.end - record.start;
                self.forward = self.forward.max(record.end);
            }
        }
    }

    /// RFC 6675 section 4: IsLost () for the record with this index.
    pub(super) fn is_lost(&self, index: usize, runs: u64, bytes: u64) -> bool {
        let above = &self.records[index + 1..];
        let sacked: u64 = above
            .iter()
            .filter(|r| r.sacked)
            .map(|r| r.end - r.start)
            .sum();
        let begins = |i: usize| {
            above[i].sacked
                && (i == 0 && !self.records[index].sacked || i > 0 && !above[i - 1].sacked)
        };
        let discontiguous = (0..above.len()).filter(|&i| begins(i)).count() as u64;
        discontiguous >= runs || sacked > bytes
    }

    pub(super) fn mark_below_sacked(&mut self, runs: u64, bytes: u64) {
        for index in 0..self.records.len() {
            if !self.records[index].sacked && self.is_lost(index, runs, bytes) {
                self.records[index].lost = true;
            }
        }
    }

    pub(super) fn mark_below_forward(&mut self) {
        for record in &mut self.records {
            if !record.sacked && record.end <= self.forward {
                record.lost = true;
            }
        }
    }

    /// RFC 8985 section 6.2 step 5.
    pub(super) fn mark_overdue(&mut self, newest: Transmission, allowance: Span, now: Time) {
        for record in &mut self.records {
            let before = record.order < newest.order.0;
            let waits = record.lost && !record.retransmitted;
            if !record.sacked && !waits && before && record.sent_at + allowance <= now {
                record.lost = true;
                record.retransmitted = false;
            }
        }
    }

    pub(super) fn mark_after_timeout(&mut self, recent: Option<Span>, now: Time) {
        let reneged = self.records.first().is_some_and(|r| r.sacked);
        if reneged {
            for record in &mut self.records {
                record.sacked = false;
            }
        }
        for (index, record) in self.records.iter_mut().enumerate() {
            let given_time =
                !reneged && index > 0 && recent.is_some_and(|r| record.sent_at + r > now);
            if !record.sacked && !given_time {
                record.lost = true;
                record.retransmitted = false;
            }
        }
    }

    pub(super) fn retransmit(&mut self, position: u64, now: Time) {
        self.transmissions += 1;
        for record in &mut self.records {
            if record.start == position {
                record.order = self.transmissions;
                record.retransmitted = true;
                record.ever = true;
                record.sent_at = now;
            }
        }
    }

    /// Treats the retransmission just sent as the original transmission, unless that was marked
    /// lost.
    pub(super) fn count_as_original(&mut self, position: u64) {
        for record in &mut self.records {
            if record.start == position && !record.lost {
                record.retransmitted = false;
            }
        }
    }

    /// Splits the buffer at `position` (tcp_fragment).
    pub(super) fn cut_buffer(&mut self, position: u64, part: u64) {
        let of = self.records.iter().find(|record| record.end == position);
        let Some(cut) = of.map(|record| record.part) else {
            return;
        };
        for record in &mut self.records {
            if record.part == cut && record.start >= position {
                record.part = part;
            }
        }
    }

    /// Number of outstanding buffers as sent, and after Linux's merging and splitting
    /// (tcp_shift_skb_data, tcp_match_skb_to_sack).
    pub(super) fn buffers(&self) -> (i32, i32) {
        let mut left = self.records.clone();
        left.dedup_by_key(|record| record.buffer);
        let mut now = self.records.clone();
        now.dedup_by(|next, record| {
            let whole = next.end - next.start == record.end - record.start;
            let together = match (record.sacked, next.sacked) {
                (true, true) => whole || record.part == next.part,
                (false, false) => record.part == next.part,
                _ => false,
            };
            // The next comparison is with the last segment of a buffer.
            if together {
                *record = *next;
            }
            together
        });
        (left.len() as i32, now.len() as i32)
    }

    /// RFC 6675 section 4: SetPipe (), with segments counted as at least `full` bytes.
    pub(super) fn pipe(&self, full: u32) -> u64 {
        let mut pipe = 0;
        for record in self.records.iter().filter(|r| !r.sacked) {
            let length = (record.end - record.start).max(u64::from(full));
            pipe += if record.lost { 0 } else { length };
            pipe += if record.retransmitted { length } else { 0 };
        }
        pipe
    }

    pub(super) fn sum(&self, of: impl Fn(&Record) -> bool) -> u64 {
        let records = self.records.iter().filter(|r| of(r));
        records.map(|r| r.end - r.start).sum()
    }

    /// RFC 6675 section 4, NextSeg () rule 1.
    pub(super) fn next_lost(&self) -> Option<LostSegment> {
        self.first(|r| !r.sacked && r.lost && !r.retransmitted)
    }

    /// RFC 6675 section 4, NextSeg () rule 3.
    pub(super) fn next_suspect(&self) -> Option<LostSegment> {
        let forward = self.forward;
        self.first(|r| !r.sacked && !r.lost && !r.retransmitted && r.end <= forward)
    }

    /// RFC 6675 section 4, NextSeg () rule 4.
    pub(super) fn highest_not_sacked(&self) -> Option<LostSegment> {
        let record = self.records.iter().rfind(|r| !r.sacked)?;
        Some(segment(record))
    }

    fn first(&self, of: impl Fn(&Record) -> bool) -> Option<LostSegment> {
        self.records.iter().find(|r| of(r)).map(segment)
    }
}

fn segment(record: &Record) -> LostSegment {
    LostSegment {
        position: record.start,
        length: (record.end - record.start) as u32,
    }
}
