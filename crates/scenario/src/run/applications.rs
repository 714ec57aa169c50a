//! What applications tell, as data.

use bentpipe_sim::report::{Messages, Page, Pages, Report, Responses};
use bentpipe_types::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

/// What a flow's applications tell, where they do.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ApplicationSummary {
    /// request-response: answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<ResponsesSummary>,
    /// web: pages, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageSummary>>,
    /// web: navigations begun, those that were cut short by the end of the run included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigations: Option<u64>,
    /// web: page load times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Quantiles>,
    /// web: times to first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<Quantiles>,
    /// packets: sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
}

/// A distribution of times in milliseconds; null where there is none.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Quantiles {
    /// The shortest.
    pub min: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// Answers to requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResponsesSummary {
    /// Requests made.
    pub requests: u64,
    /// Those that were answered.
    pub count: u64,
    /// From a request's first byte written to its answer's last byte read.
    pub time_ms: Quantiles,
}

/// A page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PageSummary {
    /// When navigation started, in seconds.
    pub start_s: f64,
    /// From there to the first byte of the document, in seconds.
    pub first_byte_s: f64,
    /// From there to the last byte of the last object, in seconds.
    pub load_s: f64,
    /// Objects, the document among them.
    pub objects: u32,
    /// Bytes of them all.
    pub bytes: u64,
}

/// Packets of a source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MessagesSummary {
    /// Sent, or written.
    pub sent: u64,
    /// Received whole.
    pub received: u64,
    /// Bytes received, headers not counted.
    pub bytes: u64,
    /// From sent to received whole; quantiles within 1.6%.
    pub delay_ms: Quantiles,
}

impl ApplicationSummary {
    pub(super) fn new(report: &Report) -> Self {
        let pages = report.pages.as_ref();
        let times = |of: fn(&Page) -> Span| {
            pages.map(|pages| Quantiles::of(pages.loaded.iter().map(of).collect()))
        };
        Self {
            responses: report.responses.as_ref().map(ResponsesSummary::new),
            pages: pages.map(|pages| pages.loaded.iter().map(PageSummary::new).collect()),
            navigations: pages.map(|pages: &Pages| pages.begun),
            page_load_ms: times(|page| page.load),
            first_byte_ms: times(|page| page.first_byte),
            messages: report.messages.as_ref().map(MessagesSummary::new),
        }
    }
}

impl Quantiles {
    /// Of all there are: the quantile p is the smallest that a share p does not exceed.
    fn of(mut times: Vec<Span>) -> Self {
        times.sort_unstable();
        let Some(last) = times.len().checked_sub(1) else {
            return Self::default();
        };
        let at = |index: usize| Some(times[index].as_millis_f64());
        let quantile = |share: f64| {
            let rank = (share * times.len() as f64).ceil() as usize;
            at(rank.saturating_sub(1).min(last))
        };
        let sum: f64 = times.iter().map(|time| time.as_millis_f64()).sum();
        Self {
            min: at(0),
            mean: Some(sum / times.len() as f64),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: at(last),
        }
    }
}

impl ResponsesSummary {
    fn new(responses: &Responses) -> Self {
        Self {
            requests: responses.asked,
            count: responses.times.len() as u64,
            time_ms: Quantiles::of(responses.times.clone()),
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

impl MessagesSummary {
    fn new(messages: &Messages) -> Self {
        let delays = &messages.delays;
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        Self {
            sent: messages.sent,
            received: messages.received,
            bytes: messages.bytes,
            delay_ms: Quantiles {
                min: ms(delays.min()),
                mean: ms(delays.mean()),
                p50: ms(delays.quantile(0.5)),
                p95: ms(delays.p95()),
                p99: ms(delays.quantile(0.99)),
                max: ms(delays.max()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_definition() {
        let of = |count: u64| Quantiles::of((1..=count).rev().map(Span::from_millis).collect());
        let hundred = of(100);
        assert_eq!(hundred.p50, Some(50.0));
        assert_eq!(hundred.p95, Some(95.0));
        assert_eq!(hundred.p99, Some(99.0));
        assert_eq!((hundred.min, hundred.max), (Some(1.0), Some(100.0)));
        assert_eq!(hundred.mean, Some(50.5));
        let one = of(1);
        assert_eq!((one.p50, one.p99), (Some(1.0), Some(1.0)));
        assert_eq!(of(0).mean, None);
    }
}
