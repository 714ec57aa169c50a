//! Bit rates that may be zero.

use std::fmt;
use std::str::FromStr;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::rate::Rate;
use crate::quantity::string_quantity::string_quantity;

/// Bit rate in a schedule: `"5 Mbit/s"`, or `"0 bit/s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduledRate(pub u64);

impl FromStr for ScheduledRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let zero = split(text).is_some_and(|(number, _)| number == 0.0);
        if zero && text.trim_end().ends_with("bit/s") {
            return Ok(Self(0));
        }
        let Rate(rate) = text.parse()?;
        Ok(Self(rate.bits_per_second()))
    }
}

impl fmt::Display for ScheduledRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match bentpipe_types::BitRate::new(self.0) {
            Some(rate) => Rate(rate).fmt(f),
            None => f.write_str("0 bit/s"),
        }
    }
}

string_quantity!(
    ScheduledRate,
    r#"a rate such as "10 Mbit/s""#,
    pattern: concat!("^", number!(), " *(bit/s|kbit/s|Mbit/s|Gbit/s)$"),
    examples: ["10 Mbit/s", "64 kbit/s", "0 bit/s"]
);
