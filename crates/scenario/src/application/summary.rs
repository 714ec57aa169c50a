//! Application metrics, as data.

use bentpipe_sim::report::{
    Activity, Call, Messages, Page, Pages, Report, Responses, SpeechQuality, Transfers,
    VideoQuality, Viewing,
};
use bentpipe_types::{Span, SpanStatistics, Time, rank};
use schemars::JsonSchema;
use serde::Serialize;

use crate::quic::summary::QuicSummary;

/// Metrics of the applications of a flow, or of many flows together. A field is absent if it does
/// not apply.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ApplicationSummary {
    /// request-response: responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<ResponsesSummary>,
    /// web: pages in order. Not in groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageSummary>>,
    /// web: navigations begun, including those that the end of the run interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigations: Option<u64>,
    /// web: pages loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_loaded: Option<u64>,
    /// web: page load times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Quantiles>,
    /// web: times to first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<Quantiles>,
    /// packets: packets sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
    /// ftp, carousel: files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<TransfersSummary>,
    /// mail: messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mails: Option<TransfersSummary>,
    /// voice: calls in order. Not in groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallSummary>>,
    /// voice: calls begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_begun: Option<u64>,
    /// voice: mean opinion scores, from 1 to 4.5, of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_mos: Option<Quantiles>,
    /// voice: mouth-to-ear delays of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mouth_to_ear_ms: Option<Quantiles>,
    /// video: playback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSummary>,
    /// video-call: calls in order. Not in groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_calls: Option<Vec<VideoCallSummary>>,
    /// video-call: calls begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_calls_begun: Option<u64>,
    /// video-call: mean rates of the received video in bit/s, of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_call_rate_bps: Option<Quantiles>,
    /// video-call: mean times from capture to display, of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_call_delay_ms: Option<Quantiles>,
    /// video-call: shares of frames that were not shown, of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_call_frames_missing: Option<Quantiles>,
    /// video-call: mean opinion scores of the video, from 1 to 5, of each direction of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_call_mos: Option<Quantiles>,
    /// ping: requests and replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echoes: Option<EchoesSummary>,
    /// mix: activities of users, by application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activities: Option<Vec<ActivitySummary>>,
    /// transport = "quic": the connections at both ends. Not in groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSummary>,
}

/// Files or mail messages.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TransfersSummary {
    /// Transfers begun.
    pub begun: u64,
    /// Transfers completed.
    pub count: u64,
    /// Bytes of completed transfers.
    pub bytes: u64,
    /// ftp: time from the first command for a file to the reply that confirms it. mail: time from
    /// opening the connection to the reply that confirms the message.
    pub time_ms: Quantiles,
}

/// A call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallSummary {
    /// Start time, in seconds.
    pub start_s: f64,
    /// Time for which the caller spoke, in seconds; null for a call that was in progress at the
    /// end.
    pub lasts_s: Option<f64>,
    /// Quality at the called party; null before it can be computed.
    pub there: Option<HeardSummary>,
    /// Quality at the caller; null before it can be computed.
    pub back: Option<HeardSummary>,
}

/// Quality of a call at one end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HeardSummary {
    /// Packets sent by the other end.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived too late to be played.
    pub late: u64,
    /// Mouth-to-ear delay: packet, codec, network and jitter buffer; null if nothing arrived.
    pub delay_ms: Option<f64>,
    /// Interarrival jitter at the end of the call (RFC 3550).
    pub jitter_ms: f64,
    /// Rating factor R of ITU-T G.107: at most 93.2.
    pub rating: f64,
    /// Mean opinion score that corresponds to it, from 1 to 4.5.
    pub mos: f64,
}

/// A video call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VideoCallSummary {
    /// Start time, in seconds.
    pub start_s: f64,
    /// Time for which the caller sent, in seconds; null for a call that was in progress at the end.
    pub lasts_s: Option<f64>,
    /// Quality at the called party; null before it can be computed.
    pub there: Option<SeenSummary>,
    /// Quality at the caller; null before it can be computed.
    pub back: Option<SeenSummary>,
}

/// Quality of the video that one end of a call receives.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SeenSummary {
    /// Packets of video sent by the other end, up to the last that arrived.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Packets that arrived after their frame or a later one had been shown.
    pub late: u64,
    /// Frames whose display time has passed.
    pub frames: u64,
    /// Frames that were shown.
    pub shown: u64,
    /// Number of freezes: times between two shown frames that are at least 150 ms longer than the
    /// average of the 30 previous ones, and at least three times as long (freezeCount of W3C's
    /// WebRTC statistics).
    pub freezes: u64,
    /// Total duration of freezes, in seconds.
    pub frozen_s: f64,
    /// Mean time from capture to display; null if nothing was shown.
    pub delay_ms: Option<f64>,
    /// Mean rate of the received video in bit/s, with RTP headers.
    pub rate_bps: f64,
    /// Mean opinion score of the video by ITU-T G.1070, from 1 to 5.
    pub mos: f64,
}

/// Video playback.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VideoSummary {
    /// Videos that started to play.
    pub started: u64,
    /// Time from the request to the first picture.
    pub start_up_ms: Quantiles,
    /// Number of stalls for lack of data.
    pub stalls: u64,
    /// Total duration of stalls, in seconds.
    pub stalled_s: f64,
    /// Total time played, in seconds.
    pub played_s: f64,
    /// Segments fetched.
    pub segments: u64,
    /// Mean rate of the segments, in bit/s; null without any.
    pub rate_bps: Option<f64>,
    /// Number of changes to another rate.
    pub switches: u64,
}

/// Echo requests and replies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EchoesSummary {
    /// Requests sent.
    pub requests: u64,
    /// Requests that were answered.
    pub count: u64,
    /// Time from request to reply; quantiles are estimated from buckets, as for round-trip times.
    pub time_ms: Quantiles,
}

/// Activities of users with one application.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivitySummary {
    /// Name of the application in the mix.
    pub name: String,
    /// Activities begun.
    pub begun: u64,
    /// Activities completed.
    pub finished: u64,
    /// Activities that failed.
    pub failed: u64,
}

/// A distribution, of times in milliseconds if its name ends in `_ms`; null without values.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Quantiles {
    /// Minimum.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// In groups: the percentiles from 0 to 100, for a plot of the distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Vec<f64>>,
}

/// Responses to requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResponsesSummary {
    /// Requests made.
    pub requests: u64,
    /// Requests that were answered.
    pub count: u64,
    /// Time from writing a request's first byte to reading its response's last byte.
    pub time_ms: Quantiles,
}

/// A web page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PageSummary {
    /// Start of navigation, in seconds.
    pub start_s: f64,
    /// Time from the start of navigation to the first byte of the document, in seconds.
    pub first_byte_s: f64,
    /// Time from the start of navigation to the last byte of the last object, in seconds.
    pub load_s: f64,
    /// Number of objects, including the document.
    pub objects: u32,
    /// Bytes of all objects.
    pub bytes: u64,
}

/// Packets of a source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessagesSummary {
    /// Packets sent as datagrams, or written to a connection.
    pub sent: u64,
    /// Packets received: datagrams, or packets read to their last byte from a connection.
    pub received: u64,
    /// Bytes received, without headers.
    pub bytes: u64,
    /// Time from sending a packet to its complete reception; quantiles are estimated from buckets,
    /// as for round-trip times.
    pub delay_ms: Quantiles,
}

impl ApplicationSummary {
    /// Creates the summary of one flow.
    pub(crate) fn new(report: &Report) -> Self {
        Self::of(report, Scope::Flow)
    }

    /// Creates the summary of many flows together.
    pub(crate) fn of_group(report: &Report) -> Self {
        Self::of(report, Scope::Group)
    }

    fn of(report: &Report, scope: Scope) -> Self {
        let pages = report.pages.as_ref();
        let times = |of: fn(&Page) -> Span| {
            pages.map(|pages| Quantiles::of(pages.loaded.iter().map(of), scope))
        };
        let calls = report.calls.as_ref();
        let ways = |of: fn(&SpeechQuality) -> Option<f64>| {
            calls.map(|calls| {
                Quantiles::of_values(
                    calls.qualities().filter_map(|way| of(&way)).collect(),
                    scope,
                )
            })
        };
        let video_calls = report.video_calls.as_ref();
        let views = |of: fn(&VideoQuality) -> Option<f64>| {
            video_calls.map(|calls| {
                Quantiles::of_values(
                    calls.qualities().filter_map(|way| of(&way)).collect(),
                    scope,
                )
            })
        };
        let each = scope == Scope::Flow;
        let activities = &report.activities;
        Self {
            responses: (report.responses.as_ref())
                .map(|responses| ResponsesSummary::new(responses, scope)),
            pages: pages
                .filter(|_| each)
                .map(|pages| pages.loaded.iter().map(PageSummary::new).collect()),
            navigations: pages.map(|pages: &Pages| pages.begun),
            pages_loaded: pages.map(|pages| pages.loaded.len() as u64),
            page_load_ms: times(|page| page.load),
            first_byte_ms: times(|page| page.first_byte),
            messages: (report.messages.as_ref())
                .map(|messages| MessagesSummary::new(messages, scope)),
            files: (report.files.as_ref()).map(|files| TransfersSummary::new(files, scope)),
            mails: (report.mails.as_ref()).map(|mails| TransfersSummary::new(mails, scope)),
            calls: calls
                .filter(|_| each)
                .map(|calls| calls.calls.iter().map(CallSummary::new).collect()),
            calls_begun: calls.map(|calls| calls.calls.len() as u64),
            call_mos: ways(|way| Some(way.opinion)),
            mouth_to_ear_ms: ways(|way| way.delay.map(Span::as_millis_f64)),
            video: (report.viewing.as_ref()).map(|viewing| VideoSummary::new(viewing, scope)),
            video_calls: video_calls
                .filter(|_| each)
                .map(|calls| calls.calls.iter().map(VideoCallSummary::new).collect()),
            video_calls_begun: video_calls.map(|calls| calls.calls.len() as u64),
            video_call_rate_bps: views(|way| Some(way.rate)),
            video_call_delay_ms: views(|way| way.delay.map(Span::as_millis_f64)),
            video_call_frames_missing: views(|way| {
                (way.frames > 0).then(|| 1.0 - way.shown as f64 / way.frames as f64)
            }),
            video_call_mos: views(|way| Some(way.opinion)),
            echoes: (report.echoes.as_ref()).map(|echoes| EchoesSummary {
                requests: echoes.sent,
                count: echoes.received,
                time_ms: Quantiles::of_histogram(&echoes.times, scope),
            }),
            activities: (!activities.is_empty())
                .then(|| activities.iter().map(ActivitySummary::new).collect()),
            quic: (report.quic.as_deref().filter(|_| each))
                .map(|opener| QuicSummary::new(opener, report.quic_server.as_deref())),
        }
    }
}

/// Extent of a distribution: groups have all percentiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    Flow,
    Group,
}

/// Returns the shares of the percentiles.
fn hundredths() -> impl Iterator<Item = f64> {
    (0..=100).map(|percent| f64::from(percent) / 100.0)
}

impl Quantiles {
    /// Creates the distribution of a group.
    pub(crate) fn of_group(values: Vec<f64>) -> Self {
        Self::of_values(values, Scope::Group)
    }

    fn of(times: impl Iterator<Item = Span>, scope: Scope) -> Self {
        Self::of_values(times.map(Span::as_millis_f64).collect(), scope)
    }

    /// Creates a distribution from all values: the quantile p is the value at [`rank`] p.
    fn of_values(mut values: Vec<f64>, scope: Scope) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else {
            return Self::default();
        };
        let quantile = |share: f64| values[rank(share, values.len() as u64) as usize - 1];
        let sum: f64 = values.iter().sum();
        Self {
            min: Some(values[0]),
            mean: Some(sum / values.len() as f64),
            p50: Some(quantile(0.5)),
            p95: Some(quantile(0.95)),
            p99: Some(quantile(0.99)),
            max: Some(values[last]),
            percentiles: (scope == Scope::Group).then(|| hundredths().map(quantile).collect()),
        }
    }

    /// Creates a distribution from times that were counted in buckets.
    fn of_histogram(times: &SpanStatistics, scope: Scope) -> Self {
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        let percentiles = || hundredths().map(|share| ms(times.quantile(share)));
        Self {
            min: ms(times.min()),
            mean: ms(times.mean()),
            p50: ms(times.quantile(0.5)),
            p95: ms(times.p95()),
            p99: ms(times.quantile(0.99)),
            max: ms(times.max()),
            percentiles: (scope == Scope::Group && times.count() > 0)
                .then(|| percentiles().collect())
                .flatten(),
        }
    }
}

impl ResponsesSummary {
    fn new(responses: &Responses, scope: Scope) -> Self {
        Self {
            requests: responses.asked,
            count: responses.times.len() as u64,
            time_ms: Quantiles::of(responses.times.iter().copied(), scope),
        }
    }
}

impl TransfersSummary {
    fn new(transfers: &Transfers, scope: Scope) -> Self {
        Self {
            begun: transfers.begun,
            count: transfers.times.len() as u64,
            bytes: transfers.bytes,
            time_ms: Quantiles::of(transfers.times.iter().copied(), scope),
        }
    }
}

impl PageSummary {
    fn new(page: &Page) -> Self {
        Self {
            start_s: page.start.since(Time::ZERO).as_secs_f64(),
            first_byte_s: page.first_byte.as_secs_f64(),
            load_s: page.load.as_secs_f64(),
            objects: page.objects,
            bytes: page.bytes,
        }
    }
}

impl CallSummary {
    fn new(call: &Call<SpeechQuality>) -> Self {
        Self {
            start_s: call.start.as_secs_f64(),
            lasts_s: call.lasts.map(Span::as_secs_f64),
            there: call.there.as_ref().map(HeardSummary::new),
            back: call.back.as_ref().map(HeardSummary::new),
        }
    }
}

impl HeardSummary {
    fn new(heard: &SpeechQuality) -> Self {
        Self {
            packets: heard.packets,
            lost: heard.lost,
            late: heard.late,
            delay_ms: heard.delay.map(Span::as_millis_f64),
            jitter_ms: heard.jitter.as_millis_f64(),
            rating: heard.rating,
            mos: heard.opinion,
        }
    }
}

impl VideoCallSummary {
    fn new(call: &Call<VideoQuality>) -> Self {
        Self {
            start_s: call.start.as_secs_f64(),
            lasts_s: call.lasts.map(Span::as_secs_f64),
            there: call.there.as_ref().map(SeenSummary::new),
            back: call.back.as_ref().map(SeenSummary::new),
        }
    }
}

impl SeenSummary {
    fn new(seen: &VideoQuality) -> Self {
        Self {
            packets: seen.packets,
            lost: seen.lost,
            late: seen.late,
            frames: seen.frames,
            shown: seen.shown,
            freezes: seen.freezes,
            frozen_s: seen.frozen.as_secs_f64(),
            delay_ms: seen.delay.map(Span::as_millis_f64),
            rate_bps: seen.rate,
            mos: seen.opinion,
        }
    }
}

impl VideoSummary {
    fn new(viewing: &Viewing, scope: Scope) -> Self {
        let fetched_s = viewing.fetched.as_secs_f64();
        Self {
            started: viewing.start_ups.len() as u64,
            start_up_ms: Quantiles::of(viewing.start_ups.iter().copied(), scope),
            stalls: viewing.stalls,
            stalled_s: viewing.stalled.as_secs_f64(),
            played_s: viewing.played.as_secs_f64(),
            segments: viewing.segments,
            rate_bps: (fetched_s > 0.0).then(|| viewing.bits / fetched_s),
            switches: viewing.switches,
        }
    }
}

impl ActivitySummary {
    fn new(activity: &Activity) -> Self {
        Self {
            name: activity.name.to_string(),
            begun: activity.begun,
            finished: activity.finished,
            failed: activity.failed,
        }
    }
}

impl MessagesSummary {
    fn new(messages: &Messages, scope: Scope) -> Self {
        Self {
            sent: messages.sent,
            received: messages.received,
            bytes: messages.bytes,
            delay_ms: Quantiles::of_histogram(&messages.delays, scope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_definition() {
        let of = |count: u64| Quantiles::of((1..=count).rev().map(Span::from_millis), Scope::Flow);
        let hundred = of(100);
        assert_eq!(hundred.p50, Some(50.0));
        assert_eq!(hundred.p95, Some(95.0));
        assert_eq!(hundred.p99, Some(99.0));
        assert_eq!((hundred.min, hundred.max), (Some(1.0), Some(100.0)));
        assert_eq!(hundred.mean, Some(50.5));
        let one = of(1);
        assert_eq!((one.p50, one.p99), (Some(1.0), Some(1.0)));
        assert_eq!(of(0).mean, None);
        let all = Quantiles::of((0..=100).map(Span::from_millis), Scope::Group);
        let percentiles = all.percentiles.expect("of a group");
        assert_eq!(percentiles.len(), 101);
        assert!(percentiles.is_sorted());
        assert_eq!((percentiles[0], percentiles[100]), (0.0, 100.0));
        let hundred = Quantiles::of((1..=100).map(Span::from_millis), Scope::Group);
        let percentiles = hundred.percentiles.expect("of a group");
        assert!((1..=100).all(|percent| percentiles[percent] == percent as f64));
    }
}
