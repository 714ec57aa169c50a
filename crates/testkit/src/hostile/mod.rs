//! Hostile networks and peers: any mix of loss, reordering, duplication, delay jumps, false headers,
//! windows that shut, applications that sleep, and a peer that lies. A case is made from one number,
//! its seed, and is the same on every machine.
//!
//! [`network`] runs two endpoints over such a path, [`operations`] one connection under any sequence of
//! operations. What is found, and how to run a seed again, is in `docs/validation/hostile.md`.

mod alone;
mod capture;
mod case;
mod checks;
mod dice;
mod hosts;
mod lies;
mod pair;
mod path;
mod settings;
mod split;
mod work;

use std::fmt;

pub use capture::Capture;
pub use case::{Kind, Stall};

/// What became of two endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Ending {
    /// Both streams are exact, and both ends closed.
    Exact,
    /// An end was reset, or gave up.
    Error,
    /// An end waits for what doesn't come, or there was nothing that it could have told.
    Waiting,
}

/// What a case came to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// What it was, and how it ended; none, for [`operations`].
    pub ending: Option<(Kind, Ending)>,
    /// Things that happened.
    pub events: u64,
    /// Packets that the connections sent.
    pub packets: u64,
    /// Headers with changed bits that passed for whole: a checksum of 16 bits doesn't tell of all.
    pub undetected: u64,
}

/// What is not as it must be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of case.
    pub kind: Kind,
    /// What is wrong, and the state of the connection.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

impl std::error::Error for Failure {}

/// Two endpoints over the path of this seed.
///
/// # Errors
/// What is not as it must be. A panic of the connection is one.
pub fn network(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    pair::Pair::new(seed, capture).run()
}

/// Two endpoints, and one or two gateways between them that split their connection; each part over a
/// path of its own.
///
/// # Errors
/// What is not as it must be. A panic of a connection is one.
pub fn split(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::new(seed, false, capture).run()
}

/// The same with two gateways that carry the connection over persistent ones.
///
/// # Errors
/// What is not as it must be. A panic of a connection is one.
pub fn multiplexed(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::new(seed, true, capture).run()
}

/// The same, where the gateways die, one or the other, and begin anew.
///
/// # Errors
/// What is not as it must be. A panic of a connection is one.
pub fn mortal(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    split::Chain::mortal(seed, capture).run()
}

/// One connection, under the operations of this seed: its application's, a peer's that may lie, and
/// time.
///
/// # Errors
/// What is not as it must be. A panic of the connection is one.
pub fn operations(seed: u64, capture: Option<&mut Capture>) -> Result<Counts, Failure> {
    alone::Alone::new(seed, capture).run()
}
