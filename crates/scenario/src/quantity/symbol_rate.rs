//! Symbol rates.

use std::fmt;
use std::str::FromStr;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{Unit, number, write_in};
use crate::quantity::string_quantity::{in_base_units, string_quantity};

/// Symbols per second: `"20 Mbaud"`. Units: baud, kbaud, Mbaud, Gbaud (powers of 1000).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SymbolRate(pub u64);

const UNITS: [Unit; 4] = [
    ("baud", 1),
    ("kbaud", 1_000),
    ("Mbaud", 1_000_000),
    ("Gbaud", 1_000_000_000),
];

const RANGE: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

impl FromStr for SymbolRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let Some(rate) = in_base_units(text, &UNITS) else {
            let expected = r#"a symbol rate such as "20 Mbaud" (units: baud, kbaud, Mbaud, Gbaud)"#;
            return Err(QuantityError::new(expected, text));
        };
        let rate = rate.ok().filter(|rate| RANGE.contains(rate));
        rate.map(Self)
            .ok_or_else(|| QuantityError::new("a symbol rate from 1 kbaud to 100 Gbaud", text))
    }
}

impl fmt::Display for SymbolRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0, &UNITS)
    }
}

string_quantity!(
    SymbolRate,
    r#"a symbol rate such as "20 Mbaud""#,
    pattern: concat!("^", number!(), " *(baud|kbaud|Mbaud|Gbaud)$"),
    examples: ["20 Mbaud", "500 kbaud"]
);
