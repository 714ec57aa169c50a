//! The result of an emulation: the object of `run --json`, for real flows.

use std::collections::BTreeMap;

use bentpipe_host::Datagram;
use bentpipe_scenario::{RunOutput, Scenario};
use bentpipe_types::{Series, Span, Time};
use serde_json::{Value, json};

use super::run_result::{FlowResult, RunResult};
use crate::Clock;
use crate::engine::{Lateness, Refusals};

/// Results of an emulation.
#[derive(Debug)]
pub struct EmulationResult {
    /// The result as in `run --json`, with `late_ms`, `too_late`, `refusal_counts` and `notes` in
    /// addition.
    pub summary: serde_json::Value,
    /// Probes of links, TCP_INFO of the flows' senders, and the bytes that receivers have read.
    pub series: Vec<Series>,
    /// Exit status of the last command, if there was one.
    pub status: Option<i32>,
}

/// Limits of the 99th and the 99.9th percentile of lateness, beyond which the result is marked as
/// not trustworthy. Fractions of the longest link's propagation delay there and back.
pub(super) const TOO_LATE: [f64; 2] = [0.05, 0.5];

/// Everything that the result is made from.
pub(super) struct RunData<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) output: RunOutput,
    pub(super) result: RunResult,
    pub(super) late: &'a Lateness,
    pub(super) refusals: &'a Refusals,
    pub(super) notes: Vec<String>,
    pub(super) clock: Clock,
}

/// Creates the result. Values of a flow that the kernel does not provide are null.
pub(super) fn emulation_result(data: RunData<'_>) -> EmulationResult {
    let RunData {
        scenario,
        output,
        result,
        late,
        refusals,
        mut notes,
        clock,
    } = data;
    let mut summary = serde_json::to_value(&output.summary).unwrap_or_default();
    for (index, flow) in result.flows.iter().enumerate() {
        if flow.kernel_sends {
            use_kernel_values(&mut summary["flows"][index], flow);
        }
    }
    summary["ended_s"] = result.ended.as_secs_f64().into();
    summary["wall_s"] = clock.now().as_secs_f64().into();
    let late_ms = late.summary();
    let longest = longest_link(scenario).as_secs_f64() * 1e3;
    let too_late = late_ms.p99 > TOO_LATE[0] * longest || late_ms.p999 > TOO_LATE[1] * longest;
    if too_late {
        notes.push(format!(
            "this machine was too slow: one packet in a hundred left {:.1} ms late or later, one in a thousand {:.1} ms, over a link of {longest:.1} ms there and back; the results are not reliable",
            late_ms.p99, late_ms.p999
        ));
    }
    for (flow, settings) in result.flows.iter().zip(&scenario.flows) {
        let name = &settings.name;
        if let Some(at) = flow.mismatch {
            notes.push(format!(
                "flows.{name}: byte {at} differs from the one that was sent"
            ));
        }
        if flow.lengthened > 0 {
            notes.push(format!(
                "flows.{name}.app: {} datagrams shorter than {} B were lengthened, since they carry their number and time",
                flow.lengthened,
                Datagram::LEAST
            ));
        }
    }
    summary["late_ms"] = json!(late_ms);
    summary["too_late"] = too_late.into();
    summary["refused"] = json!(refusal_counts(refusals));
    summary["notes"] = json!(notes);
    let mut series = output.series;
    for (flow, settings) in result.flows.iter().zip(&scenario.flows) {
        series.extend(flow.samples.series(&settings.name));
        series.push(delivery_series(&settings.name, &flow.curve));
    }
    EmulationResult {
        summary,
        series,
        status: result.status,
    }
}

/// Replaces values of a flow's sender by those that the kernel provides.
fn use_kernel_values(summary: &mut Value, flow: &FlowResult) {
    let segments = flow.samples.segments();
    for (key, sampled) in [
        ("segments_sent", segments.map(|(sent, _)| sent)),
        (
            "segments_retransmitted",
            segments.map(|(_, retransmitted)| retransmitted),
        ),
    ] {
        // The counters of an aborted connection are known up to the last sample.
        let counted = summary[key].as_u64();
        summary[key] = counted.max(sampled).into();
    }
    let [min, mean, p95, max] = flow.samples.rtt_ms();
    summary["timeouts"] = flow.timeouts.into();
    summary["fast_recoveries"] = flow.recoveries.into();
    summary["rtt_ms"] = json!({ "min": min, "mean": mean, "p95": p95, "max": max });
    if let Some(summary) = summary.as_object_mut() {
        summary.remove("limited_s");
        summary.remove("control_timeouts");
        summary.remove("path_mtu");
    }
}

/// Returns the series of bytes that the receiver had read.
fn delivery_series(name: &str, curve: &[(Time, u64)]) -> Series {
    let points = curve.iter();
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

/// Returns the largest propagation delay there and back of a link.
pub(super) fn longest_link(scenario: &Scenario) -> Span {
    let links = scenario.links.iter();
    let delays = links.map(|link| link.round_trip());
    delays.max().unwrap_or(Span::ZERO)
}

/// Counts of refused packets by reason, without those that are 0.
pub(crate) fn refusal_counts(refusals: &Refusals) -> BTreeMap<&'static str, u64> {
    let mut counts: BTreeMap<_, _> = refusals.each().filter(|(_, count)| *count > 0).collect();
    for (name, count) in [
        ("unencodable", refusals.unencodable),
        ("not_taken", refusals.not_taken),
        ("device_down", refusals.device_down),
        ("uncut", refusals.uncut),
    ] {
        if count > 0 {
            counts.insert(name, count);
        }
    }
    counts
}
