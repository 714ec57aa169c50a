//! Capacity on demand: a direction that may send what a hub grants it, frame by frame.
//!
//! The return channel of a satellite network (DVB-RCS, DVB-RCS2: demand-assigned multiple access)
//! is not a pipe. Time on a carrier is divided into frames. At each frame's beginning a terminal
//! with data requests capacity, and the hub (NCC) plans a later frame from the requests of all
//! terminals. The categories are those of EN 301 545-2: constant (CRA), rate-based (RBDC),
//! volume-based (VBDC) and free (FCA), served in that order, as in OpenSAND's
//! `DamaCtrl::computeTerminalsAllocations` and SNS-3's superframe allocator.
//!
//! A [`Carrier`] is the shared part: the hub's state and its plan of the current frame. A
//! `Terminal` is one direction's part: its requests, and its burst in each frame.
//!
//! The hub has no events. Its plan of a frame depends only on requests made at least one frame
//! earlier, so the first terminal that enters a frame can have it computed. A terminal without data
//! and outstanding requests enters no frames.

mod burst;
mod capacity;
mod carrier;
mod constant;
mod counts;
mod grant;
mod hub;
mod modes;
mod path;
mod prefix;
mod settings;
mod sharing;
mod takers;
mod terminal;

pub use carrier::{Access, Carrier};
pub use counts::{AccessCounts, OnAir};
pub(crate) use path::Path;
pub use settings::{CarrierSettings, TerminalSettings};
pub(crate) use terminal::Terminal;

#[cfg(test)]
mod tests;
