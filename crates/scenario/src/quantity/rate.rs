//! Bit rates.

use std::fmt;
use std::str::FromStr;

use bentpipe_types::BitRate;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, write_in};
use crate::quantity::string_quantity::{in_base_units, string_quantity};
use crate::quantity::units::RATES;

/// A bit rate: `"1.536 Mbit/s"`. Units: bit/s, kbit/s, Mbit/s, Gbit/s (powers of 1000).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub BitRate);

const FASTEST: u64 = 1_000_000_000_000;

impl FromStr for Rate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let Some(rate) = in_base_units(text, &RATES) else {
            let expected = r#"a rate such as "10 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#;
            return Err(QuantityError::new(expected, text));
        };
        let rate = rate.ok().filter(|rate| *rate <= FASTEST);
        rate.and_then(BitRate::new)
            .map(Self)
            .ok_or_else(|| QuantityError::new("a rate from 1 bit/s to 1000 Gbit/s", text))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0.bits_per_second(), &RATES)
    }
}

string_quantity!(
    Rate,
    r#"a rate such as "10 Mbit/s""#,
    pattern: concat!("^", number!(), " *(bit/s|kbit/s|Mbit/s|Gbit/s)$"),
    examples: ["10 Mbit/s", "1.536 Mbit/s", "64 kbit/s"]
);
