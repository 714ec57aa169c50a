//! What serde can say, in few bytes: for what is kept in memory, and read again by the same program.
//!
//! Values follow one another, without names: numbers in groups of seven bits (LEB128), one up, so that the
//! largest, which stands for never and for nowhere, takes as little room as 0; variants by number; what
//! may be any number of things after how many there are. It is no format for files: what isn't read in the
//! types that it was written from makes no sense.

mod read;
mod write;

use std::fmt::{self, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Packs a value, behind what is in `bytes` already.
pub(crate) fn pack<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), Unpackable> {
    value.serialize(&mut write::Writer { bytes })
}

/// Unpacks a value.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unpackable> {
    T::deserialize(&mut read::Reader { bytes })
}

/// What can't be packed, or isn't what was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unpackable;

impl Display for Unpackable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it can't be packed, or isn't what was")
    }
}

impl std::error::Error for Unpackable {}

impl serde::ser::Error for Unpackable {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

impl serde::de::Error for Unpackable {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::net::IpAddr;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    enum Shape {
        Nothing,
        New(i64),
        Two(u16, Option<Box<Shape>>),
        Named { float: f64, flag: bool },
    }

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    struct Thing {
        numbers: VecDeque<u64>,
        text: String,
        shapes: Vec<Shape>,
        pair: (u8, i8, char),
        array: [u32; 3],
        address: Option<IpAddr>,
        unit: (),
        narrow: f32,
        map: BTreeMap<u32, i16>,
    }

    fn shape() -> impl Strategy<Value = Shape> {
        let leaf = prop_oneof![
            Just(Shape::Nothing),
            any::<i64>().prop_map(Shape::New),
            (any::<f64>(), any::<bool>()).prop_map(|(float, flag)| Shape::Named { float, flag }),
        ];
        leaf.prop_recursive(3, 8, 1, |inner| {
            (any::<u16>(), proptest::option::of(inner))
                .prop_map(|(number, shape)| Shape::Two(number, shape.map(Box::new)))
        })
    }

    fn thing() -> impl Strategy<Value = Thing> {
        let number = prop_oneof![any::<u64>(), Just(u64::MAX), 0..300_u64];
        (
            proptest::collection::vec_deque(number, 0..5),
            ".{0,9}",
            proptest::collection::vec(shape(), 0..4),
            any::<(u8, i8, char)>(),
            any::<[u32; 3]>(),
            any::<Option<IpAddr>>(),
            any::<f32>(),
            any::<BTreeMap<u32, i16>>(),
        )
            .prop_map(
                |(numbers, text, shapes, pair, array, address, narrow, map)| Thing {
                    numbers,
                    text,
                    shapes,
                    pair,
                    array,
                    address,
                    unit: (),
                    narrow,
                    map,
                },
            )
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(thing in thing(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            pack(&thing, &mut bytes).expect("packed");
            prop_assert_eq!(unpack::<Thing>(&bytes), Ok(thing));
            // What isn't all there is refused.
            let cut = cut.index(bytes.len());
            prop_assert_eq!(unpack::<Thing>(&bytes[..cut]), Err(Unpackable));
        }

        #[test]
        fn other_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack::<Thing>(&bytes);
        }
    }

    #[test]
    fn what_is_nothing_and_what_is_never_take_a_byte() {
        for number in [0, 1, 100, u64::MAX] {
            let mut bytes = Vec::new();
            pack(&number, &mut bytes).expect("packed");
            assert_eq!(bytes.len(), 1, "{number}");
        }
        let mut bytes = Vec::new();
        pack(&(1.5_f64, f64::NAN), &mut bytes).expect("packed");
        let (float, nan): (f64, f64) = unpack(&bytes).expect("unpacked");
        assert!(float == 1.5 && nan.is_nan());
    }
}
