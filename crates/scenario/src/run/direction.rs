//! One direction of a scenario's link, as the engine takes it.

use bentpipe_link::{
    DropTail, EarlyRandomDrop, EarlyRandomDropSettings, Ends, ErrorModel, Fair, FairSettings,
    Limit, Measure, QueueDiscipline, Queueing, Red, RedSettings, Settings,
};
use bentpipe_types::RandomStream;

use crate::quantity::QueueLimit;
use crate::{Direction, Queue, QueueRule, RandomErrors, RedRule, Scenario};

pub(super) fn settings(direction: &Direction, name: &str, seed: u64) -> Settings {
    Settings {
        rate: direction.rate,
        delay: direction.delay,
        queue: queueing(direction, name, seed),
        errors: errors(direction, name, seed),
        redundancy: direction.redundancy.get(),
        ends: Ends::default(),
    }
}

fn errors(direction: &Direction, name: &str, seed: u64) -> Vec<ErrorModel> {
    let random = || RandomStream::new(seed, name, "errors");
    let mut errors = Vec::new();
    match direction.errors.random {
        RandomErrors::None => {}
        RandomErrors::BitErrorRate(rate) => errors.push(ErrorModel::bit_errors(rate, random())),
        RandomErrors::PacketLossRate(rate) => errors.push(ErrorModel::packet_loss(rate, random())),
    }
    if !direction.errors.lost_packets.is_empty() {
        errors.push(ErrorModel::listed(
            direction.errors.lost_packets.iter().copied(),
        ));
    }
    errors
}

fn queueing(direction: &Direction, name: &str, seed: u64) -> Queueing {
    let limit = limit(direction.queue.limit);
    let queue: Box<dyn QueueDiscipline> = match direction.queue.rule {
        QueueRule::DropTail => return DropTail { limit }.into(),
        QueueRule::Red(red) => Box::new(Red::new(red_settings(direction, red, limit))),
        QueueRule::EarlyRandomDrop {
            drop_level,
            drop_probability,
        } => Box::new(EarlyRandomDrop::new(EarlyRandomDropSettings {
            limit,
            drop_level: self::limit(drop_level),
            drop_probability,
        })),
        QueueRule::Fair { quantum, flows } => Box::new(Fair::new(FairSettings {
            limit,
            quantum,
            flows: flows as usize,
        })),
    };
    let random = RandomStream::new(seed, name, "queue");
    Queueing::Discipline { queue, random }
}

fn red_settings(direction: &Direction, red: RedRule, limit: Limit) -> RedSettings {
    let threshold = |limit: QueueLimit| match limit {
        QueueLimit::Packets(packets) => (Measure::Packets, f64::from(packets)),
        QueueLimit::Bytes(bytes) => (Measure::Bytes, bytes.get() as f64),
    };
    let (measure, minimum_threshold) = threshold(red.minimum_threshold);
    RedSettings {
        limit,
        measure,
        minimum_threshold,
        maximum_threshold: threshold(red.maximum_threshold).1,
        maximum_probability: red.maximum_probability,
        weight: red.weight,
        gentle: red.gentle,
        ecn: red.ecn,
        mean_packet: red.mean_packet,
        mean_transmission: direction.rate.transmission_time(red.mean_packet),
    }
}

fn limit(limit: QueueLimit) -> Limit {
    match limit {
        QueueLimit::Packets(packets) => Limit::Packets(u64::from(packets)),
        QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
    }
}

/// Every direction's queue, in the order in which the network numbers them.
pub(super) fn queues(scenario: &Scenario) -> Vec<Queue> {
    let both = scenario
        .links
        .iter()
        .flat_map(|link| [&link.forward, &link.backward]);
    both.map(|direction| direction.queue).collect()
}
