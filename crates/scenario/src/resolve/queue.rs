//! Queues.

use std::sync::Arc;

use bentpipe_types::{BitRate, Bytes, Span};

use super::classes;
use crate::class::{OTHERS, PacketClass};
use crate::quantity::{Probability, QueueLimit, Size};
use crate::schema::hints::list;
use crate::schema::{QueueFile, QueueKind};
use crate::{Queue, QueueClass, QueueRule, RedRule};

/// A full packet on most networks, for the default queue.
const FULL_PACKET: u64 = 1500;
/// The default queue holds no less.
const SMALLEST_DEFAULT_QUEUE: u32 = 100;
/// Least and most of a quantum: a smaller one goes round and round for each packet.
const QUANTUM: (u64, u64) = (64, 1 << 24);
const FLOWS: (u32, u32) = (1, 65_536);
const DEFAULT_FLOWS: u32 = 1024;
/// RED's usual packet, as in ns-2.
const MEAN_PACKET: u64 = 1000;

/// A key of the queue, and what is wrong with it.
pub(super) type Wrong = (&'static str, String);

/// The queue of a direction with this rate, on a link with this round trip.
pub(super) fn resolve(
    file: Option<&QueueFile>,
    classes: &[PacketClass],
    rate: BitRate,
    round_trip: Span,
) -> Result<Queue, Wrong> {
    let given = file.and_then(|queue| queue.limit);
    let limit = given.unwrap_or_else(|| {
        let product = rate.bytes_in(round_trip);
        if product > Bytes::new(u64::from(SMALLEST_DEFAULT_QUEUE) * FULL_PACKET) {
            QueueLimit::Bytes(product)
        } else {
            QueueLimit::Packets(SMALLEST_DEFAULT_QUEUE)
        }
    });
    Ok(Queue {
        rule: match file {
            Some(file) => rule(file, classes, limit)?,
            None => QueueRule::DropTail,
        },
        limit,
        limit_is_default: given.is_none(),
    })
}

fn rule(file: &QueueFile, classes: &[PacketClass], limit: QueueLimit) -> Result<QueueRule, Wrong> {
    let keys = file.kind.keys();
    if let Some(foreign) = file.given().find(|key| !keys.contains(key)) {
        let message = if keys.is_empty() {
            format!("has no effect: a \"{}\" queue has only a limit", file.kind)
        } else {
            format!(
                "has no effect: a \"{}\" queue has limit, {}",
                file.kind,
                list(keys).replace('"', "")
            )
        };
        return Err((foreign, message));
    }
    Ok(match file.kind {
        QueueKind::DropTail => QueueRule::DropTail,
        QueueKind::Red => QueueRule::Red(red(file, limit)?),
        QueueKind::EarlyRandomDrop => QueueRule::EarlyRandomDrop {
            drop_level: file.drop_level.unwrap_or_else(|| share(limit, 2)),
            drop_probability: file.drop_probability.map_or(0.02, Probability::get),
        },
        QueueKind::Fair => {
            let quantum = file.quantum.unwrap_or(Size(Bytes::new(FULL_PACKET)));
            if !(QUANTUM.0..=QUANTUM.1).contains(&quantum.0.get()) {
                let message = format!(r#"expected "64 B" to "16 MiB", got "{quantum}""#);
                return Err(("quantum", message));
            }
            let flows = file.flows.unwrap_or(DEFAULT_FLOWS);
            if !(FLOWS.0..=FLOWS.1).contains(&flows) {
                let message = format!("expected {} to {}, got {flows}", FLOWS.0, FLOWS.1);
                return Err(("flows", message));
            }
            QueueRule::Fair {
                quantum: quantum.0,
                flows,
            }
        }
        QueueKind::Priority => QueueRule::Priority(by_priority(file, classes)?),
        QueueKind::Weighted => QueueRule::Weighted(by_weight(file, classes)?),
    })
}

fn by_priority(file: &QueueFile, classes: &[PacketClass]) -> Result<Arc<[QueueClass]>, Wrong> {
    let refuse = |message| Err(("classes", message));
    let Some(names) = &file.classes else {
        return refuse(
            r#"missing; expected classes, the first first, such as ["calls", "web"]"#.to_owned(),
        );
    };
    let mut found = Vec::new();
    for name in names {
        found.push((name.as_str(), 1));
    }
    of_names(found, classes).or_else(refuse)
}

/// In thousandths: so that shares are the same on every machine.
const WEIGHTS: std::ops::RangeInclusive<f64> = 0.001..=1_000_000.0;

fn by_weight(file: &QueueFile, classes: &[PacketClass]) -> Result<Arc<[QueueClass]>, Wrong> {
    let refuse = |message| Err(("weights", message));
    let Some(weights) = &file.weights else {
        return refuse(
            "missing; expected classes and their weights, such as { calls = 4, web = 2 }"
                .to_owned(),
        );
    };
    let mut found = Vec::new();
    for (name, weight) in weights.iter() {
        if !WEIGHTS.contains(weight) {
            return refuse(format!(
                "expected 0.001 to 1000000 for \"{name}\", got {weight:?}"
            ));
        }
        found.push((name, (weight * 1_000.0 + 0.5) as u32));
    }
    of_names(found, classes).or_else(refuse)
}

/// The classes of a queue, and what belongs to none of them.
fn of_names(names: Vec<(&str, u32)>, classes: &[PacketClass]) -> Result<Arc<[QueueClass]>, String> {
    if names.is_empty() {
        return Err("expected at least one class".to_owned());
    }
    let mut found: Vec<QueueClass> = Vec::new();
    for (name, weight) in names {
        let class = classes::find(name, classes)?;
        if found.iter().any(|other| other.class == class) {
            return Err(format!("expected \"{name}\" once"));
        }
        found.push(QueueClass {
            name: Arc::from(name),
            class,
            weight,
        });
    }
    if found.iter().all(|other| other.class.is_some()) {
        found.push(QueueClass {
            name: Arc::from(OTHERS),
            class: None,
            weight: 1_000,
        });
    }
    Ok(found.into())
}

fn red(file: &QueueFile, limit: QueueLimit) -> Result<RedRule, Wrong> {
    let maximum_threshold = match (file.maximum_threshold, file.minimum_threshold) {
        (Some(maximum), _) => maximum,
        // Floyd, "RED: Discussions of Setting Parameters" (1997): three times the minimum.
        (None, Some(QueueLimit::Packets(minimum))) => {
            QueueLimit::Packets(minimum.saturating_mul(3))
        }
        (None, Some(QueueLimit::Bytes(minimum))) => {
            QueueLimit::Bytes(Bytes::new(minimum.get().saturating_mul(3)))
        }
        (None, None) => share(limit, 2),
    };
    let minimum_threshold = file
        .minimum_threshold
        .unwrap_or_else(|| share(maximum_threshold, 3));
    let (low, high) = match (minimum_threshold, maximum_threshold) {
        (QueueLimit::Packets(low), QueueLimit::Packets(high)) => (u64::from(low), u64::from(high)),
        (QueueLimit::Bytes(low), QueueLimit::Bytes(high)) => (low.get(), high.get()),
        _ => {
            let message = format!(
                r#"expected the unit of maximum_threshold ("{maximum_threshold}"), got "{minimum_threshold}""#
            );
            return Err(("minimum_threshold", message));
        }
    };
    if low >= high {
        let message = format!(
            r#"expected more than minimum_threshold ("{minimum_threshold}"), got "{maximum_threshold}""#
        );
        return Err(("maximum_threshold", message));
    }
    let weight = file.weight.map_or(0.002, Probability::get);
    if weight <= 0.0 {
        let message = "expected a weight above 0, or the average never moves".to_owned();
        return Err(("weight", message));
    }
    let mean_packet = file.mean_packet.unwrap_or(Size(Bytes::new(MEAN_PACKET)));
    if !(1..=65_535).contains(&mean_packet.0.get()) {
        let message = format!(r#"expected "1 B" to "65535 B", got "{mean_packet}""#);
        return Err(("mean_packet", message));
    }
    Ok(RedRule {
        minimum_threshold,
        maximum_threshold,
        maximum_probability: file.maximum_probability.map_or(0.1, Probability::get),
        weight,
        gentle: file.gentle.unwrap_or(true),
        ecn: file.ecn.unwrap_or(false),
        mean_packet: mean_packet.0,
    })
}

/// So much of a limit, but at least one packet or byte.
fn share(limit: QueueLimit, of: u32) -> QueueLimit {
    match limit {
        QueueLimit::Packets(packets) => QueueLimit::Packets((packets / of).max(1)),
        QueueLimit::Bytes(bytes) => {
            QueueLimit::Bytes(Bytes::new((bytes.get() / u64::from(of)).max(1)))
        }
    }
}
