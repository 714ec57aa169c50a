//! Losses of packets in transit.

use bentpipe_link::{BurstSettings, ErrorModel};
use bentpipe_types::RandomStream;
use serde_json::{Value, json};

use crate::link::schema::ErrorsFile;
use crate::link::settings::{Direction, Errors, Link, RandomErrors};
use crate::quantity::probability::Probability;

pub(crate) fn resolve_random_errors(
    file: &ErrorsFile,
) -> Result<RandomErrors, (&'static str, String)> {
    let Some(mean_length) = file.mean_burst_packets else {
        let shares = [
            ("loss_in_burst", file.loss_in_burst),
            ("loss_between_bursts", file.loss_between_bursts),
        ];
        if let Some((key, _)) = shares.iter().find(|(_, share)| share.is_some()) {
            let message = "has no effect: there is no mean_burst_packets".to_owned();
            return Err((key, message));
        }
        return match (file.bit_error_rate, file.packet_loss_rate) {
            (Some(_), Some(_)) => Err((
                "packet_loss_rate",
                "expected bit_error_rate or packet_loss_rate, got both".to_owned(),
            )),
            (Some(rate), None) => Ok(RandomErrors::BitErrorRate(rate.get())),
            (None, Some(rate)) => Ok(RandomErrors::PacketLossRate(rate.get())),
            (None, None) => Ok(RandomErrors::None),
        };
    };
    let Some(loss_rate) = file
        .packet_loss_rate
        .filter(|_| file.bit_error_rate.is_none())
    else {
        let message = "expected packet_loss_rate with it: the total loss rate";
        return Err(("mean_burst_packets", message.to_owned()));
    };
    let settings = BurstSettings {
        loss_rate: loss_rate.get(),
        mean_length,
        loss_in_burst: file.loss_in_burst.map_or(1.0, Probability::get),
        loss_between: file.loss_between_bursts.map_or(0.0, Probability::get),
    };
    if settings.share_in_burst().is_some() {
        return Ok(RandomErrors::Bursts(settings));
    }
    Err(if !(mean_length >= 1.0 && mean_length.is_finite()) {
        let message = format!("expected a number of packets from 1 on, got {mean_length:?}");
        ("mean_burst_packets", message)
    } else if settings.loss_in_burst <= settings.loss_between {
        let message = "expected less than loss_in_burst".to_owned();
        ("loss_between_bursts", message)
    } else if !(settings.loss_between..=settings.loss_in_burst).contains(&settings.loss_rate) {
        let message = format!(
            "expected a rate from loss_between_bursts to loss_in_burst, {:?} to {:?}, got {:?}",
            settings.loss_between, settings.loss_in_burst, settings.loss_rate
        );
        ("packet_loss_rate", message)
    } else {
        let message = format!(
            "expected longer bursts, got {mean_length:?}: a packet at least gets through between two, and {:?} of all are to be lost",
            settings.loss_rate
        );
        ("mean_burst_packets", message)
    })
}

/// Returns the random losses, drawn from random streams of this component.
pub(crate) fn error_model(direction: &Direction, component: &str, seed: u64) -> Option<ErrorModel> {
    let random = || RandomStream::new(seed, component, "errors");
    match direction.errors.random {
        RandomErrors::None => None,
        RandomErrors::Bursts(settings) => Some(ErrorModel::bursts(settings, random())),
        RandomErrors::BitErrorRate(rate) => Some(ErrorModel::bit_errors(rate, random())),
        RandomErrors::PacketLossRate(rate) => Some(ErrorModel::packet_loss(rate, random())),
    }
}

pub(crate) fn error_models(
    link: &Link,
    direction: &Direction,
    name: &str,
    seed: u64,
) -> Vec<ErrorModel> {
    let random = error_model(direction, name, seed);
    // For a broadcast channel, each receiver has its own.
    let mut errors: Vec<ErrorModel> = random.into_iter().filter(|_| !link.broadcast).collect();
    if !direction.errors.lost_packets.is_empty() {
        errors.push(ErrorModel::listed_losses(
            direction.errors.lost_packets.iter().copied(),
        ));
    }
    errors
}

pub(crate) fn errors_data(errors: &Errors) -> Value {
    let (bit_error_rate, packet_loss_rate) = match errors.random {
        RandomErrors::None => (0.0, 0.0),
        RandomErrors::BitErrorRate(rate) => (rate, 0.0),
        RandomErrors::PacketLossRate(rate) => (0.0, rate),
        RandomErrors::Bursts(bursts) => (0.0, bursts.loss_rate),
    };
    let bursts = match errors.random {
        RandomErrors::Bursts(bursts) => Some(bursts),
        _ => None,
    };
    json!({
        "bit_error_rate": bit_error_rate,
        "packet_loss_rate": packet_loss_rate,
        "mean_burst_packets": bursts.map(|bursts| bursts.mean_length),
        "loss_in_burst": bursts.map(|bursts| bursts.loss_in_burst),
        "loss_between_bursts": bursts.map(|bursts| bursts.loss_between),
        "lost_packets": *errors.lost_packets,
    })
}
