//! What came of an emulation: the object that `run --json` prints, of real flows.

use bentpipe_scenario::{App, LimitedSummary, PathMtuSummary, RttSummary, RunOutput, Scenario};
use bentpipe_types::{Series, Span, Time};
use serde_json::{Value, json};

use super::{Emulated, FlowRan, Ran, TOO_LATE, refused};
use crate::Clock;
use crate::engine::{Lateness, Refusals};

/// All that is known by the end.
pub(super) struct Known<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) output: RunOutput,
    pub(super) ran: Ran,
    pub(super) late: &'a Lateness,
    pub(super) refusals: &'a Refusals,
    pub(super) notes: Vec<String>,
    pub(super) clock: Clock,
}

/// Sums up. What the kernel does not tell of a flow is null.
pub(super) fn emulated(known: Known<'_>) -> Emulated {
    let Known {
        scenario,
        output,
        ran,
        late,
        refusals,
        mut notes,
        clock,
    } = known;
    let mut summary = serde_json::to_value(&output.summary).unwrap_or_default();
    let flows: Vec<Value> = (ran.flows.iter())
        .map(|flow| flow_summary(scenario, flow, ran.ended))
        .collect();
    summary["flows"] = flows.into();
    summary["ended_s"] = ran.ended.as_secs_f64().into();
    summary["wall_s"] = clock.now().as_secs_f64().into();
    let late_ms = late.summary();
    let longest = longest_link(scenario).as_secs_f64() * 1e3;
    let too_late = late_ms.p99 > TOO_LATE[0] * longest || late_ms.p999 > TOO_LATE[1] * longest;
    if too_late {
        notes.push(format!(
            "this machine was too slow: one packet in a hundred left {:.1} ms late or later, one in a thousand {:.1} ms, over a link of {longest:.1} ms there and back; the figures are not to be trusted",
            late_ms.p99, late_ms.p999
        ));
    }
    for flow in &ran.flows {
        if let Some(at) = flow.received.mismatch {
            let name = &scenario.flows[flow.index].name;
            notes.push(format!(
                "flows.{name}: byte {at} is not the one that was sent"
            ));
        }
    }
    summary["late_ms"] = json!(late_ms);
    summary["too_late"] = too_late.into();
    summary["refused"] = json!(refused(refusals));
    summary["notes"] = json!(notes);
    let mut series = output.series;
    for flow in &ran.flows {
        let name = &scenario.flows[flow.index].name;
        series.extend(flow.seen.series(name));
        series.push(delivered(name, flow));
    }
    Emulated {
        summary,
        series,
        status: ran.status,
    }
}

fn flow_summary(scenario: &Scenario, ran: &FlowRan, ended: Time) -> Value {
    let flow = &scenario.flows[ran.index];
    let size = match flow.app {
        App::Bulk { size } => size,
        App::Other(..) | App::Mix(..) => None,
    };
    let bytes = ran.received.bytes;
    let finish = (ran.received.curve.last())
        .filter(|(_, bytes)| size.is_some_and(|size| *bytes >= size.get()))
        .map(|(at, _)| *at);
    let failure = ran.sent.failure.or(ran.received.failure);
    let outcome = match (finish, failure) {
        (Some(_), _) => "finished",
        (None, Some(failure)) => failure,
        (None, None) => "running",
    };
    let elapsed = finish.unwrap_or(ended).since(flow.start).as_secs_f64();
    let goodput = if elapsed > 0.0 {
        8.0 * bytes as f64 / elapsed
    } else {
        0.0
    };
    let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
    let segments = ran.seen.segments();
    let [min, mean, p95, max] = ran.seen.rtt_ms();
    let mut summary = json!({
        "name": flow.name,
        "outcome": outcome,
        "bytes_delivered": bytes,
        "start_s": flow.start.as_secs_f64(),
        "first_data_s": seconds(ran.sent.connected),
        "finish_s": seconds(finish),
        "ended_s": seconds(finish),
        "goodput_bps": goodput,
        "segments_sent": segments.map(|(sent, _)| sent),
        "segments_retransmitted": segments.map(|(_, again)| again),
        "timeouts": ran.timeouts,
        "fast_recoveries": ran.recoveries,
        "rtt_ms": { "min": min, "mean": mean, "p95": p95, "max": max },
    });
    // Of our own TCP all is known.
    if let Some(sender) = &ran.statistics {
        summary["first_data_s"] = json!(seconds(sender.first_data_at));
        summary["segments_sent"] = sender.segments_sent.into();
        summary["segments_retransmitted"] = sender.segments_retransmitted.into();
        summary["timeouts"] = sender.timeouts.into();
        summary["fast_recoveries"] = sender.fast_recoveries.into();
        summary["rtt_ms"] = json!(RttSummary::new(&sender.rtt));
        summary["limited_s"] = json!(LimitedSummary::new(&sender.limited, ended));
        summary["path_mtu"] = json!(PathMtuSummary::new(sender));
    }
    summary
}

/// What the receiver had read by when.
fn delivered(name: &str, flow: &FlowRan) -> Series {
    let points = flow.received.curve.iter();
    let (times_ns, values) = points
        .map(|(at, bytes)| (at.as_nanos(), *bytes as f64))
        .unzip();
    Series {
        name: format!("{name}.delivered"),
        unit: "B",
        times_ns,
        values,
    }
}

/// Propagation there and back on the longest link.
pub(super) fn longest_link(scenario: &Scenario) -> Span {
    let links = scenario.links.iter();
    let delays = links.map(|link| link.round_trip());
    delays.max().unwrap_or(Span::ZERO)
}
