//! Changes of a direction over time, as data.

use bentpipe_link::{
    Changes, FadingSettings, InFlight, LossRates, Outages, Profile, RateCourse, Sending,
};
use bentpipe_types::Span;
use serde_json::{Value, json};

use crate::link::settings::Direction;
use crate::quantity::random::RandomLength;

/// Most steps that are listed.
const LONGEST_COURSE: usize = 4_096;

/// Returns the changes as data, with averages over the run.
pub(crate) fn changes_data(direction: &Direction, of: &Changes, duration: Span) -> Value {
    json!({
        "rate": rate(direction, &of.rate, duration),
        "delay": of.delay.as_ref().map(|profile| {
            let mean_s = profile.mean(duration, direction.delay, Span::as_secs_f64);
            let delays = || profile.steps().iter().map(|(_, delay)| delay.as_secs_f64());
            let mut data = steps(profile);
            data["mean_s"] = json!(mean_s);
            data["least_s"] = json!(delays().fold(f64::INFINITY, f64::min));
            data["most_s"] = json!(delays().fold(0.0, f64::max));
            data["ramps"] = json!(profile.ramps());
            data["course"] = listed(profile, |delay| json!(delay.as_secs_f64()));
            data
        }),
        "losses": of.losses.as_ref().map(|profile| {
            let mean = |rate: fn(LossRates) -> f64| {
                profile.mean(duration, LossRates::default(), rate)
            };
            let mut data = steps(profile);
            data["mean_packet_loss_rate"] = json!(mean(|rates| rates.packet));
            data["mean_bit_error_rate"] = json!(mean(|rates| rates.bit));
            data["course"] = listed(profile, |rates| json!([rates.packet, rates.bit]));
            data
        }),
        "outages": of.outages.iter().map(outages).collect::<Vec<_>>(),
        "fading": of.fading.as_ref().map(fading),
        "duplication": of.duplication,
        "corruption": of.corruption,
        "reordering": of.reordering.map(|(probability, late_by)| json!({
            "probability": probability,
            "late_by": RandomLength(late_by).to_string(),
        })),
        "in_order": of.keeps_order,
    })
}

/// Returns the number of steps, and the period of their repetition.
fn steps<T: Copy>(profile: &Profile<T>) -> Value {
    json!({
        "steps": profile.steps().len(),
        "every_s": profile.period().map(Span::as_secs_f64),
    })
}

/// Returns the steps as pairs of a time in seconds and a value, or null if there are too many to
/// list.
fn listed<T: Copy>(profile: &Profile<T>, value: impl Fn(T) -> Value) -> Value {
    if profile.steps().len() > LONGEST_COURSE {
        return Value::Null;
    }
    let pair = |&(at, step): &(Span, T)| json!([at.as_secs_f64(), value(step)]);
    profile.steps().iter().map(pair).collect()
}

fn rate(direction: &Direction, course: &RateCourse, duration: Span) -> Value {
    match course {
        RateCourse::Constant => Value::Null,
        RateCourse::Steps(profile) => {
            let usual = direction.rate.bits_per_second();
            let rates = || profile.steps().iter().map(|(_, rate)| *rate);
            let mut data = steps(profile);
            data["kind"] = json!("steps");
            data["mean_bps"] = json!(profile.mean(duration, usual, |rate| rate as f64));
            data["least_bps"] = json!(rates().min());
            data["most_bps"] = json!(rates().max());
            data["course"] = listed(profile, |rate| json!(rate));
            data
        }
        RateCourse::Opportunities(opportunities) => json!({
            "kind": "opportunities",
            "steps": opportunities.count(),
            "every_s": opportunities.period().as_secs_f64(),
            "mean_bps": opportunities.mean_rate(),
        }),
    }
}

fn outages(outages: &Outages) -> Value {
    json!({
        "at_s": outages.at.as_secs_f64(),
        "lasts_s": outages.lasts.as_secs_f64(),
        "every_s": outages.every.map(Span::as_secs_f64),
        "sending": match outages.sending {
            Sending::Held => "held",
            Sending::Lost => "lost",
        },
        "in_flight": match outages.in_flight {
            InFlight::Arrive => "arrive",
            InFlight::Lost => "lost",
            InFlight::Held => "held",
        },
    })
}

fn fading(fading: &FadingSettings) -> Value {
    json!({
        "clear": RandomLength(fading.clear).to_string(),
        "faded": RandomLength(fading.faded).to_string(),
        "share": fading.share(),
        "rate_bps": fading.rate,
        "packet_loss_rate": fading.losses.packet,
        "bit_error_rate": fading.losses.bit,
    })
}
