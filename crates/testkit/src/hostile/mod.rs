//! Hostile networks and peers: loss, reordering, duplication, delay jumps, false headers, closed
//! windows, applications that stop, and lying peers. A case follows from one number, its seed, and
//! is the same on every machine.
//!
//! [`network`] runs two endpoints over such a path, [`operations`] one connection under any
//! sequence of operations. Results, and how to repeat a seed: `docs/validation/hostile.md`.

mod capture;
mod case;
mod checks;
mod dice;
mod hosts;
mod lies;
mod outcome;
mod path;
mod settings;
mod single_connection;
mod split;
mod two_endpoints;
mod work_bounds;

pub use capture::Capture;
pub use case::{Kind, Stall};
pub use outcome::{CaseOutcome, Counts, Failure};

/// Runs two endpoints over the path of this seed.
///
/// # Errors
/// Returns the violated requirement; a panic of the connection counts as one.
pub fn network(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    two_endpoints::Pair::new(seed, capture).run()
}

/// Runs two endpoints with one or two split gateways between them; each part has a path of its own.
///
/// # Errors
/// Returns the violated requirement; a panic of a connection counts as one.
pub fn split(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::new(seed, false, capture).run()
}

/// As [`split`], with two gateways that carry the connection over persistent connections.
///
/// # Errors
/// Returns the violated requirement; a panic of a connection counts as one.
pub fn multiplexed(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::new(seed, true, capture).run()
}

/// As [`multiplexed`], where gateways stop and restart.
///
/// # Errors
/// Returns the violated requirement; a panic of a connection counts as one.
pub fn restarting(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::restarting(seed, capture).run()
}

/// Runs one connection under the operations of this seed: its application, a possibly lying peer,
/// and time.
///
/// # Errors
/// Returns the violated requirement; a panic of the connection counts as one.
pub fn operations(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    single_connection::Alone::new(seed, capture).run()
}
