//! Reduction of acknowledgments in the engine: the queue of the near end, and the far end.

use bentpipe_link::{FarEnd, Limit, QueueDiscipline};
use bentpipe_middlebox::ack::{
    self, Expander, ExpanderSettings, Method, Reconstructor, ReconstructorSettings,
};
use bentpipe_middlebox::{Gate, Stages, TunnelExit};

use crate::acks::schema::{FilterMode, Spacing};
use crate::acks::settings::{Acks, WaterMarks};
use crate::link::settings::Direction;

/// Most flows of which an ACK queue or a far end keeps state. A new flow replaces the one that has
/// been idle longest.
pub(crate) const FLOWS: usize = 4096;

/// Returns the queue that removes acknowledgments, if one is configured.
pub(crate) fn ack_queue(direction: &Direction, limit: Limit) -> Option<Box<dyn QueueDiscipline>> {
    let marks = |marks: WaterMarks| ack::WaterMarks {
        low: marks.low,
        high: marks.high,
        duplicates: marks.duplicates.unwrap_or(u32::MAX),
    };
    let method = match direction.acks {
        Acks::None => return None,
        Acks::Suppression(wanted) | Acks::Reconstruction { marks: wanted, .. } => {
            Method::Suppression(marks(wanted))
        }
        Acks::Compaction { marks: wanted, .. } => Method::Compaction(marks(wanted)),
        Acks::Filter(mode) => Method::Filter {
            aggressive: mode == FilterMode::Aggressive,
        },
    };
    Some(method.queue(limit, FLOWS))
}

/// Returns the far end that restores or fills in acknowledgments, or that ends a tunnel. `gate`
/// creates the check of the packets that arrive in the tunnel.
pub(crate) fn far_end(
    acks: Acks,
    tunnel: bool,
    gate: impl Fn() -> Gate,
) -> Option<Box<dyn FarEnd>> {
    let spacing = |spacing| match spacing {
        Spacing::Off => None,
        Spacing::Shared => Some(ack::Spacing::default()),
        Spacing::PerFlow => Some(ack::Spacing {
            per_flow: true,
            ..ack::Spacing::default()
        }),
    };
    match acks {
        Acks::Compaction {
            marks,
            spacing: wanted,
        } => Some(Box::new(Expander::new(ExpanderSettings {
            gate: gate(),
            high: u8::try_from(marks.high).unwrap_or(u8::MAX),
            spacing: spacing(wanted),
            flows: FLOWS,
        }))),
        Acks::Reconstruction { threshold, .. } => {
            let reconstructor = Box::new(Reconstructor::new(ReconstructorSettings {
                threshold: threshold.get() as u32,
                flows: FLOWS,
                ..ReconstructorSettings::default()
            }));
            Some(if tunnel {
                let exit = Box::new(TunnelExit::new(gate()));
                Box::new(Stages::new(vec![exit, reconstructor]))
            } else {
                reconstructor
            })
        }
        Acks::None | Acks::Suppression(_) | Acks::Filter(_) => {
            tunnel.then(|| Box::new(TunnelExit::new(gate())) as Box<dyn FarEnd>)
        }
    }
}
