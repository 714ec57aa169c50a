//! Random early detection (Floyd and Jacobson 1993).

use bentpipe_link::{Measure, QueueDiscipline, RedSettings};
use bentpipe_types::Bytes;
use serde_json::{Value, json};

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::quantity::probability::Probability;
use crate::quantity::size::Size;
use crate::queue::schema::QueueFile;
use crate::queue::settings::{QueueContext, Settings, packets_or_bytes, share};

/// Default of the typical packet length, as in ns-2.
const MEAN_PACKET: u64 = 1000;

/// Random early detection. [`QueueFile`] describes each setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Red {
    /// min_th.
    pub minimum_threshold: QueueLimit,
    /// max_th, in the same unit and above the other.
    pub maximum_threshold: QueueLimit,
    /// max_p.
    pub maximum_probability: f64,
    /// w_q, above zero.
    pub weight: f64,
    /// Whether the share grows to 1 between max_th and twice that.
    pub gentle: bool,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// Typical packet length.
    pub mean_packet: Bytes,
}

impl Settings for Red {
    fn resolve(file: &QueueFile, limit: QueueLimit, _: &[PacketClass]) -> Result<Self, KeyError> {
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
            (QueueLimit::Packets(low), QueueLimit::Packets(high)) => {
                (u64::from(low), u64::from(high))
            }
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
        Ok(Self {
            minimum_threshold,
            maximum_threshold,
            maximum_probability: file.maximum_probability.map_or(0.1, Probability::get),
            weight,
            gentle: file.gentle.unwrap_or(true),
            ecn: file.ecn.unwrap_or(false),
            mean_packet: mean_packet.0,
        })
    }

    fn measured(&self) -> Value {
        let (low, high) = (
            packets_or_bytes(self.minimum_threshold),
            packets_or_bytes(self.maximum_threshold),
        );
        json!({
            "minimum_threshold_packets": low.0,
            "minimum_threshold_bytes": low.1,
            "maximum_threshold_packets": high.0,
            "maximum_threshold_bytes": high.1,
            "maximum_probability": self.maximum_probability,
            "weight": self.weight,
            "gentle": self.gentle,
            "ecn": self.ecn,
            "mean_packet_bytes": self.mean_packet.get(),
        })
    }

    fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
        let threshold = |limit: QueueLimit| match limit {
            QueueLimit::Packets(packets) => (Measure::Packets, f64::from(packets)),
            QueueLimit::Bytes(bytes) => (Measure::Bytes, bytes.get() as f64),
        };
        let (measure, minimum_threshold) = threshold(self.minimum_threshold);
        Some(Box::new(bentpipe_link::Red::new(RedSettings {
            limit: at.limit(),
            measure,
            minimum_threshold,
            maximum_threshold: threshold(self.maximum_threshold).1,
            maximum_probability: self.maximum_probability,
            weight: self.weight,
            gentle: self.gentle,
            ecn: self.ecn,
            mean_packet: self.mean_packet,
            mean_transmission: at.rate.transmission_time(self.mean_packet),
        })))
    }
}
