//! Receiving half of one end of a video call: jitter buffer, display and reports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bentpipe_types::{Span, Time};

use super::VideoCallSettings;
use super::packet_label::{Label, SEQUENCE, extend};
use crate::Datagram;
use crate::applications::adaptive_playout::AdaptivePlayout;
use crate::applications::voice::FIRST_HOLD_BACK;
use crate::duplicate_detection::DuplicateDetection;
use crate::nada::{self, Receiver};
use crate::report::VideoQuality;
use crate::video_opinion;

/// Maximum number of incomplete frames; the oldest is given up for a further one.
const MAX_INCOMPLETE: usize = 256;
/// Number of shown frames with whose average duration a freeze is compared.
const FREEZE_FRAMES: usize = 30;
/// Minimum excess of a freeze over the average duration.
const FREEZE: Span = Span::from_millis(150);

/// Jitter buffer and display of one end.
#[derive(Debug)]
pub(super) struct VideoReceiver {
    pub(super) call: u64,
    interval: Span,
    frames: u64,
    /// Time at which the other end began to send.
    pub(super) origin: Time,
    nada: Receiver,
    arrived: DuplicateDetection,
    highest: Option<u64>,
    packets: u64,
    bytes: u64,
    late: u64,
    /// Incomplete frames, with the number of missing packets.
    incomplete: BTreeMap<u64, u8>,
    /// Complete frames that have not been shown.
    complete: BTreeSet<u64>,
    playout: Option<AdaptivePlayout>,
    display: Display,
    first_arrival: Option<Time>,
    last_arrival: Time,
    /// Time of the next report, and whether packets arrived since the last one.
    pub(super) next_report: Option<Time>,
    has_news: bool,
    /// Send and arrival time of the latest packet.
    latest: Option<(Time, Time)>,
    /// Time by which the last frame has been shown.
    pub(super) ends: Option<Time>,
}

/// The frames that have been shown.
#[derive(Clone, Debug, Default)]
struct Display {
    /// Frames that were due.
    frames: u64,
    shown: u64,
    /// Sum of the times from capture to display.
    delay: Span,
    /// Number and time of the last frame shown.
    last: Option<(u64, Time)>,
    /// Display durations of the latest frames.
    durations: VecDeque<Span>,
    freezes: u64,
    frozen: Span,
}

impl Display {
    /// Whether this frame or a later one was shown.
    fn has_shown(&self, frame: u64) -> bool {
        self.last.is_some_and(|(last, _)| frame <= last)
    }

    /// Shows a frame at `at`, `delay` after it was captured.
    fn show(&mut self, frame: u64, at: Time, delay: Span) {
        self.shown += 1;
        self.delay += delay;
        if let Some((_, last)) = self.last {
            let lasts = at.since(last);
            if !self.durations.is_empty() {
                let total = self.durations.iter().fold(Span::ZERO, |sum, of| sum + *of);
                let average = total / self.durations.len() as u64;
                if lasts >= (average * 3).max(average + FREEZE) {
                    self.freezes += 1;
                    self.frozen += lasts;
                }
            }
            if self.durations.len() == FREEZE_FRAMES {
                self.durations.pop_front();
            }
            self.durations.push_back(lasts);
        }
        self.last = Some((frame, at));
    }
}

impl VideoReceiver {
    pub(super) fn new(call: u64, frames: u64, settings: &VideoCallSettings) -> Self {
        Self {
            call,
            interval: settings.interval(),
            frames,
            origin: Time::ZERO,
            nada: Receiver::default(),
            arrived: DuplicateDetection::default(),
            highest: None,
            packets: 0,
            bytes: 0,
            late: 0,
            incomplete: BTreeMap::new(),
            complete: BTreeSet::new(),
            playout: None,
            display: Display::default(),
            first_arrival: None,
            last_arrival: Time::ZERO,
            next_report: None,
            has_news: false,
            latest: None,
            ends: None,
        }
    }

    /// Shows the frames that are due before `now`, up to number `end`.
    fn show_until(&mut self, now: Time, end: u64) {
        let Self {
            playout: Some(playout),
            complete,
            display,
            origin,
            interval,
            ..
        } = self
        else {
            return;
        };
        playout.play_until(now, end, |frame, delay| {
            display.frames += 1;
            if complete.remove(&frame) && !display.has_shown(frame) {
                display.show(frame, *origin + *interval * frame + delay, delay);
            }
        });
    }

    /// Handles a packet of video. Returns the time since the capture of its frame, if the frame is
    /// complete now.
    pub(super) fn receive(&mut self, label: Label, datagram: &Datagram, now: Time) -> Option<Span> {
        let Label::Video {
            frame,
            sequence,
            index,
            of,
        } = label
        else {
            return None;
        };
        let near = self.highest.unwrap_or(0);
        let sequence = extend(u64::from(sequence), u64::from(SEQUENCE), near);
        if index >= of || !self.arrived.note(sequence) {
            return None;
        }
        self.show_until(now, self.frames);
        let frame = extend(u64::from(frame), 0xffff, self.display.frames);
        if frame >= self.frames {
            return None;
        }
        self.highest = self.highest.max(Some(sequence));
        self.packets += 1;
        self.bytes += u64::from(datagram.length);
        self.first_arrival.get_or_insert(now);
        self.last_arrival = now;
        self.latest = Some((datagram.sent, now));
        self.has_news = true;
        self.next_report.get_or_insert(now + nada::DELTA);
        self.nada
            .arrive(sequence, datagram.length, datagram.sent, now);
        self.late += u64::from(self.display.has_shown(frame));
        let missing = self.incomplete.entry(frame).or_insert(of);
        *missing = missing.saturating_sub(1);
        if *missing > 0 {
            if self.incomplete.len() > MAX_INCOMPLETE {
                self.incomplete.pop_first();
            }
            return None;
        }
        self.incomplete.remove(&frame);
        let captured = self.origin + self.interval * frame;
        let delay = now.since(captured);
        let mut playout = self.playout.unwrap_or_else(|| {
            AdaptivePlayout::new(frame, captured, now, self.interval, FIRST_HOLD_BACK)
        });
        playout.observe(delay);
        if self.frames < u64::MAX {
            self.ends = Some(playout.played_by(self.frames.saturating_sub(1)));
        }
        if !playout.has_passed(frame) {
            self.complete.insert(frame);
        } else if !self.display.has_shown(frame) {
            self.display.show(frame, now, delay);
        }
        self.playout = Some(playout);
        Some(delay)
    }

    /// Returns the report that is due, as bits, and the time that its packet states: the send time
    /// of the latest packet of video, plus the time since that packet's arrival. The time from then
    /// to the report's arrival is the round trip (RFC 3550 section 6.4.1, LSR and DLSR).
    pub(super) fn report(&mut self, now: Time) -> Option<(u64, Time)> {
        if self.next_report.is_none_or(|at| at > now) {
            return None;
        }
        // Without packets there is nothing to report: the next packet starts the clock again.
        let has_news = std::mem::take(&mut self.has_news);
        self.next_report = has_news.then(|| now + nada::DELTA);
        let (sent, arrival) = self.latest.filter(|_| has_news)?;
        Some((self.nada.report(now).pack(), sent + now.since(arrival)))
    }

    /// Returns the quality so far; of a completed call, for all its frames.
    pub(super) fn quality(&self, is_over: bool, settings: &VideoCallSettings) -> VideoQuality {
        let mut whole = Self {
            complete: self.complete.clone(),
            display: self.display.clone(),
            playout: self.playout,
            origin: self.origin,
            ..Self::new(self.call, self.frames, settings)
        };
        let arrived = whole.complete.last().map_or(0, |last| last + 1);
        let has_end = is_over && self.frames < u64::MAX;
        whole.show_until(Time::LAST, if has_end { self.frames } else { arrived });
        let mut display = whole.display;
        if has_end {
            // Without a single frame there is no playout schedule.
            display.frames = self.frames;
        }
        let packets = self.highest.map_or(0, |highest| highest + 1);
        let lost = packets.saturating_sub(self.packets);
        let share = |part: u64| {
            if packets == 0 {
                1.0
            } else {
                part as f64 / packets as f64
            }
        };
        // The time from the first packet to the last does not include the last one's own.
        let lasted = self
            .first_arrival
            .map(|first| self.last_arrival.since(first));
        let rate = match lasted {
            Some(lasted) if lasted > Span::ZERO => {
                self.bytes as f64 * 8.0 / (lasted + settings.interval()).as_secs_f64()
            }
            _ => 0.0,
        };
        VideoQuality {
            packets,
            lost,
            late: self.late,
            frames: display.frames,
            shown: display.shown,
            freezes: display.freezes,
            frozen: display.frozen,
            delay: (display.shown > 0).then(|| display.delay / display.shown),
            rate,
            opinion: video_opinion::opinion(
                rate / 1_000.0,
                f64::from(settings.frame_rate),
                share(lost + self.late),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_is_150_ms_longer_than_the_frames_before_it() {
        let frame = Span::from_millis(33);
        // 33 + 149 ms are none, 33 + 150 are one. (Three times 33 is less.)
        for (longer, freezes) in [(149, 0), (150, 1)] {
            let mut display = Display::default();
            let mut at = Time::ZERO;
            for number in 0..50 {
                display.show(number, at, Span::ZERO);
                at += frame;
            }
            display.show(50, at + Span::from_millis(longer), Span::ZERO);
            assert_eq!(display.freezes, freezes);
            assert_eq!(display.frozen, Span::from_millis(183) * freezes);
        }
    }
}
