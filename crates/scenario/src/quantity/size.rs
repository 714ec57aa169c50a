//! Amounts of data.

use std::fmt;
use std::str::FromStr;

use bentpipe_types::Bytes;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, write_in};
use crate::quantity::string_quantity::{in_base_units, string_quantity};
use crate::quantity::units::SIZES;

/// An amount of data: `"64 KiB"`. Units: B; kB (or KB), MB, GB, powers of 1000; KiB, MiB, GiB,
/// powers of 1024.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size(pub Bytes);

/// Upper limit: one petabyte.
const LARGEST: u64 = 1_000_000_000_000_000;

impl Size {
    /// Parses a size, or returns `None` if the text is not a number with a unit of data.
    pub(crate) fn read(text: &str) -> Option<Result<Self, QuantityError>> {
        Some(match in_base_units(text, &SIZES)? {
            Ok(bytes) if bytes <= LARGEST => Ok(Self(Bytes::new(bytes))),
            Ok(_) => Err(QuantityError::new("a size up to 1000000 GB", text)),
            Err(error) => Err(error),
        })
    }
}

impl FromStr for Size {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::read(text).unwrap_or_else(|| {
            let expected = r#"a size such as "64 KiB" (units: B, kB, KiB, MB, MiB, GB, GiB)"#;
            Err(QuantityError::new(expected, text))
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(f, self.0.get(), &SIZES)
    }
}

string_quantity!(
    Size,
    r#"a size such as "64 KiB""#,
    pattern: concat!("^", number!(), " *(B|kB|KB|KiB|MB|MiB|GB|GiB)$"),
    examples: ["64 KiB", "50 MB", "1448 B"]
);

impl From<u16> for Size {
    fn from(bytes: u16) -> Self {
        Self(Bytes::new(bytes.into()))
    }
}

impl From<Size> for u16 {
    /// Converts a size, limited to the longest packet.
    fn from(size: Size) -> Self {
        Self::try_from(size.0.get()).unwrap_or(Self::MAX)
    }
}
