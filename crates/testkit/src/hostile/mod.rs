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
mod path;
mod settings;
mod single_connection;
mod split;
mod two_endpoints;
mod work_bounds;

use std::fmt;

pub use capture::Capture;
pub use case::{Kind, Stall};

/// CaseOutcome of two endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CaseOutcome {
    /// Both streams are exact, and both ends closed.
    Exact,
    /// An end was reset or gave up.
    Error,
    /// An end waits for something that never arrives, or the outcome is undefined.
    Waiting,
}

/// Result of a case.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Kind and outcome, or `None` for [`operations`].
    pub ending: Option<(Kind, CaseOutcome)>,
    /// Number of events.
    pub events: u64,
    /// Number of packets that the connections sent.
    pub packets: u64,
    /// Number of changed headers that passed the checksums, which 16 bits cannot exclude.
    pub undetected: u64,
}

/// A violated requirement.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of case.
    pub kind: Kind,
    /// The violation, and the state of the connection.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

impl std::error::Error for Failure {}

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
