//! Plans of both ends of a cell.

use super::cell::{self, Cell, Exchange, Role};
use super::{kernel, ours};

/// Port of the listener.
pub(super) const PORT: u16 = 47_000;

/// Plans of both ends.
pub(super) struct Plans {
    pub(super) ours: ours::Plan,
    pub(super) kernel: kernel::Plan,
    pub(super) connections: u32,
}

impl Plans {
    pub(super) fn of(cell: &Cell) -> Self {
        let mut plans = Self {
            ours: ours::Plan {
                key: 1,
                bytes: 0,
                after_peer: false,
                abort_after: None,
                pause: None,
            },
            kernel: kernel::Plan {
                key: 2,
                bytes: 0,
                after_peer: false,
                abort_after: None,
                pause: None,
            },
            connections: 1,
        };
        let opens = cell.role == Role::Client;
        match cell.exchange {
            Exchange::Transfer { bytes } => {
                plans.ours.bytes = bytes;
                plans.kernel.bytes = bytes;
            }
            Exchange::Short { .. } | Exchange::HalfClose { .. } => {
                let (request, reply) = match cell.exchange {
                    Exchange::HalfClose { bytes } => (100_000, bytes),
                    _ => (300, 3000),
                };
                plans.ours.bytes = if opens { request } else { reply };
                plans.kernel.bytes = if opens { reply } else { request };
                plans.ours.after_peer = !opens;
                plans.kernel.after_peer = opens;
                if let Exchange::Short { connections } = cell.exchange {
                    plans.connections = connections;
                }
            }
            Exchange::OurReset => {
                plans.kernel.bytes = 50_000_000;
                plans.ours.abort_after = Some(1_000_000);
                // It must not close before it aborts.
                plans.ours.after_peer = true;
            }
            Exchange::TheirReset => {
                plans.ours.bytes = 50_000_000;
                plans.kernel.abort_after = Some(1_000_000);
            }
            Exchange::Refused => {}
            Exchange::OurPause => {
                plans.kernel.bytes = 10_000_000;
                plans.ours.pause = Some((cell::PAUSE_AFTER, cell::PAUSE));
            }
            Exchange::TheirPause => {
                plans.ours.bytes = 10_000_000;
                plans.kernel.pause = Some((cell::PAUSE_AFTER, cell::PAUSE, cell::PAUSE_BUFFER));
            }
        }
        plans
    }
}
