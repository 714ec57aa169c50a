//! `acm`: adaptive coding and modulation of a direction.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::changes::schema::{InFlightName, SendingName};
use crate::quantity::decibels::Decibels;
use crate::quantity::symbol_rate::SymbolRate;

/// Adaptive coding and modulation: the attenuation of a rain fade (`schedule`, `traces`) determines
/// the rate.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcmFile {
    /// Set of modulation and coding modes (MODCODs). Default: "dvb-s2x".
    pub modes: Option<ModesName>,
    /// Symbols per second. The rate is this times the efficiency of the mode in use.
    pub symbol_rate: SymbolRate,
    /// Es/N0 in clear sky: energy per symbol over noise density. The attenuation is subtracted from
    /// it.
    pub es_n0: Decibels,
    /// Margin above each mode's threshold, for implementation losses and for the decrease during a
    /// fade until the link has adapted. Default: "1 dB".
    pub margin: Option<Decibels>,
    /// Additional Es/N0 for changing to a more efficient mode, or to any mode after an outage. It
    /// prevents scintillation from changing modes to and fro. Default: "0.5 dB".
    pub hysteresis: Option<Decibels>,
    /// Effect on packets that would be sent while no mode works. Default: "lost".
    pub sending: Option<SendingName>,
    /// Effect on packets in transit when the last mode fails. Default: "lost".
    pub in_flight: Option<InFlightName>,
}

words! {
    /// A set of modes.
    ModesName {
        /// The 28 modes of ETSI EN 302 307-1, table 13: QPSK 1/4 to 32APSK 9/10, from -2.35 dB.
        DvbS2 = "dvb-s2",
        /// These and the 39 modes of ETSI EN 302 307-2, table 20a: QPSK 2/9 to 256APSK 3/4, from
        /// -2.85 dB.
        DvbS2x = "dvb-s2x",
    }
}
