//! Maximum transfer units.

use std::fmt;
use std::str::FromStr;

use bentpipe_types::Bytes;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::number;
use crate::quantity::size::Size;
use crate::quantity::string_quantity::string_quantity;

/// A maximum transfer unit: a size, or the name of a kind of network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mtu(pub Size);

/// MTUs by name, in bytes of IP packet (gaid1998, table 1).
const NAMED: [(&str, u64); 8] = [
    ("hyperchannel", 65_535),
    ("token-ring-16", 17_914),
    ("token-ring-4", 4_464),
    ("fddi", 4_352),
    ("ethernet", 1_500),
    ("ieee-802.3", 1_492),
    ("x.25", 576),
    ("point-to-point", 296),
];

impl FromStr for Mtu {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, bytes)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(Self(Size(Bytes::new(*bytes))));
        }
        match Size::read(text) {
            Some(size) => size.map(Self),
            None => {
                let names: Vec<_> = NAMED.iter().map(|(name, _)| *name).collect();
                let expected = format!(
                    r#"a size such as "1500 B", or a network: {}"#,
                    names.join(", ")
                );
                Err(QuantityError::new(expected, text))
            }
        }
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_quantity!(
    Mtu,
    r#"a size such as "1500 B", or a network such as "ethernet""#,
    pattern: concat!(
        "^(",
        number!(),
        " *(B|kB|KB|KiB|MB|MiB|GB|GiB)|hyperchannel|token-ring-16|token-ring-4|fddi|ethernet",
        r"|ieee-802\.3|x\.25|point-to-point)$"
    ),
    examples: ["1500 B", "ethernet", "x.25"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_networks_have_the_mtus_of_the_paper() {
        for (text, bytes) in [("ethernet", 1500), ("x.25", 576), ("296 B", 296)] {
            assert_eq!(text.parse::<Mtu>().expect("one").0.0.get(), bytes);
        }
        let error = "ehternet".parse::<Mtu>().expect_err("no network");
        assert!(error.to_string().contains("ieee-802.3"), "{error}");
    }
}
