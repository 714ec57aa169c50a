//! A queue for each traffic class, by priority or by weight.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bentpipe_link::{ClassSettings, Classes, ClassesSettings, QueueDiscipline, Service};
use serde_json::{Value, json};

use crate::class::settings::{OTHERS, PacketClass, find_class};
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, QueueFacts, Settings};

/// Range of weights. They are stored in thousandths, so that shares are the same on every machine.
const WEIGHTS: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// A class of a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueClass {
    /// Name of the class.
    pub name: Arc<str>,
    /// Index of the scenario's class, or `None` for packets of no other class of the queue.
    pub class: Option<usize>,
    /// Weight relative to the other classes, in thousandths; unused with priorities.
    pub weight: u32,
}

/// A queue for each class, with strict priority in this order.
#[derive(Clone, PartialEq, Debug)]
pub struct Priority(pub Arc<[QueueClass]>);

/// A queue for each class, served by weight.
#[derive(Clone, PartialEq, Debug)]
pub struct Weighted(pub Arc<[QueueClass]>);

impl Settings for Priority {
    const FACTS: QueueFacts = QueueFacts {
        manages: true,
        has_classes: true,
    };

    fn resolve(file: &QueueFile, _: QueueLimit, classes: &[PacketClass]) -> Result<Self, KeyError> {
        let refuse = |message| Err(("classes", message));
        let Some(names) = &file.classes else {
            let message = r#"missing; expected classes, the first first, such as ["calls", "web"]"#;
            return refuse(message.to_owned());
        };
        let found = names.iter().map(|name| (name.as_str(), 1)).collect();
        of_names(found, classes).map(Self).or_else(refuse)
    }

    fn measured(&self) -> Value {
        json!({ "classes": names(&self.0) })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        Some(discipline(&self.0, Service::Priority, at))
    }
}

impl Settings for Weighted {
    const FACTS: QueueFacts = QueueFacts {
        manages: true,
        has_classes: true,
    };

    fn resolve(file: &QueueFile, _: QueueLimit, classes: &[PacketClass]) -> Result<Self, KeyError> {
        let refuse = |message| Err(("weights", message));
        let Some(weights) = &file.weights else {
            let message =
                "missing; expected classes and their weights, such as { calls = 4, web = 2 }";
            return refuse(message.to_owned());
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
        of_names(found, classes).map(Self).or_else(refuse)
    }

    fn measured(&self) -> Value {
        let weights = self.0.iter().map(|class| f64::from(class.weight) / 1_000.0);
        json!({ "classes": names(&self.0), "weights": weights.collect::<Vec<_>>() })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        Some(discipline(&self.0, Service::Weighted, at))
    }
}

/// Returns the classes of a queue, with a class for all other packets.
fn of_names(names: Vec<(&str, u32)>, classes: &[PacketClass]) -> Result<Arc<[QueueClass]>, String> {
    if names.is_empty() {
        return Err("expected at least one class".to_owned());
    }
    let mut found: Vec<QueueClass> = Vec::new();
    for (name, weight) in names {
        let class = find_class(name, classes)?;
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

fn names(classes: &[QueueClass]) -> Vec<&str> {
    classes.iter().map(|class| &*class.name).collect()
}

fn discipline(
    of: &[QueueClass],
    service: Service,
    at: &QueueContext<'_>,
) -> Box<dyn QueueDiscipline> {
    let settings = |class: &QueueClass| ClassSettings {
        name: class.name.clone(),
        packets: class.class.map(|index| at.classes[index].clone()),
        weight: class.weight,
    };
    Box::new(Classes::new(ClassesSettings {
        limit: at.limit(),
        service,
        classes: of.iter().map(settings).collect(),
    }))
}
