//! Capacity on demand: a direction that may send what a hub grants it, frame by frame.
//!
//! The return channel of a satellite network (DVB-RCS, DVB-RCS2, and their kin: demand-assigned multiple access) is
//! not a pipe. Time on a carrier is cut in frames; at each frame's beginning a terminal with something to send asks
//! for capacity, and the hub (NCC) plans a later frame out of what all terminals have asked for. The categories are
//! those of EN 301 545-2: constant (CRA), rate-based (RBDC), volume-based (VBDC) and free (FCA), served in that
//! order, as OpenSAND's `DamaCtrl::computeTerminalsAllocations` and SNS-3's superframe allocator serve them.
//!
//! A [`Carrier`] is what terminals share: its hub's memory and its plan of the present frame. A `Terminal` is a
//! direction's side: what it asks for, and its burst in each frame.
//!
//! There are no events of the hub's. What it plans for a frame depends on requests that were made a frame before at the
//! latest, so that whoever enters a frame first can have it planned then; a terminal that neither has
//! anything to send nor waits for what it has asked for enters none.

mod burst;
mod capacity;
mod carrier;
mod constant;
mod counts;
mod hub;
mod modes;
mod path;
mod prefix;
mod sharing;
mod takers;
mod terminal;

pub use carrier::{Access, Carrier, CarrierSettings, TerminalSettings};
pub use counts::{AccessCounts, OnAir};
pub(crate) use path::Path;
pub(crate) use terminal::Terminal;

#[cfg(test)]
mod tests;
