//! Settings of a carrier and of its terminals.

use bentpipe_types::{BitRate, Span};

/// Settings of a carrier, or of a group of carriers planned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CarrierSettings {
    /// Maximum total rate of all terminals.
    pub rate: BitRate,
    /// Frame length, above zero. The first frame begins at the start of the run, at every terminal.
    pub frame: Span,
    /// Time from a request's arrival at the hub to sending the plan that includes it.
    pub processing: Span,
}

/// A terminal's entitlements on a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalSettings {
    /// Transmission rate in clear sky. Grants per frame never exceed this rate times the frame.
    pub rate: BitRate,
    /// Rate granted in each frame without request (CRA). The sum over all terminals is at most the
    /// carrier's rate.
    pub constant: Option<BitRate>,
    /// Maximum rate that it may request (RBDC), in addition to the constant rate.
    pub rate_based: Option<BitRate>,
    /// Whether it requests the volume of its backlog (VBDC).
    pub volume_based: bool,
    /// Whether it receives a share of unrequested capacity (FCA).
    pub free: bool,
    /// Delay of a request to the hub.
    pub request_delay: Span,
    /// Delay of the hub's plan to the terminal.
    pub grant_delay: Span,
}
