//! `acm`: adaptive coding and modulation of a direction.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{InFlightName, SendingName};
use crate::quantity::{Decibels, SymbolRate};
use bentpipe_types::words;

/// Adaptive coding and modulation: the attenuation of a rain fade (`schedule`, `traces`) makes the rate.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcmFile {
    /// The modes of modulation and coding (MODCODs). Default: "dvb-s2x".
    pub modes: Option<ModesName>,
    /// Symbols a second. The rate is the efficiency of the mode in use times this.
    pub symbol_rate: SymbolRate,
    /// Es/N0 in clear sky: energy per symbol over noise density. The attenuation is taken off it.
    pub es_n0: Decibels,
    /// Added to each mode's threshold: losses of the implementation, and what a fade may take while the link
    /// adapts. Default: "1 dB".
    pub margin: Option<Decibels>,
    /// What a more efficient mode needs beyond threshold and margin, and any mode after an outage, so that
    /// scintillation does not switch modes to and fro. Default: "0.5 dB".
    pub hysteresis: Option<Decibels>,
    /// What becomes of packets that are to be sent while no mode works. Default: "lost".
    pub sending: Option<SendingName>,
    /// What becomes of packets that are on their way when the last mode fails. Default: "lost".
    pub in_flight: Option<InFlightName>,
}

words! {
    /// A set of modes.
    ModesName {
        /// The 28 of ETSI EN 302 307-1, table 13: QPSK 1/4 to 32APSK 9/10, from -2.35 dB on.
        DvbS2 = "dvb-s2",
        /// Those and the 39 of ETSI EN 302 307-2, table 20a: QPSK 2/9 to 256APSK 3/4, from -2.85 dB on.
        DvbS2x = "dvb-s2x",
    }
}
