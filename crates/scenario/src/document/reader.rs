//! The `serde` deserializer of the tree, whose errors have path and position.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use crate::document::tree::{TreeEntry, TreeNode, TreeValue};
use crate::fault::{Fault, Segment};
use crate::hints;

/// Deserializes one value.
pub(crate) struct Reader<'de>(pub(crate) &'de TreeNode);

impl Reader<'_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.0.value {
            TreeValue::String(value) => Unexpected::Str(value),
            TreeValue::Integer(value) => {
                i64::try_from(*value).map_or(Unexpected::Other("a huge number"), Unexpected::Signed)
            }
            TreeValue::Float(value) => Unexpected::Float(*value),
            TreeValue::Boolean(value) => Unexpected::Bool(*value),
            TreeValue::Date => Unexpected::Other("a date or time of day"),
            TreeValue::Array(_) => Unexpected::Seq,
            TreeValue::Table(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.0.value {
            TreeValue::String(value) => visitor.visit_borrowed_str(value),
            TreeValue::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_i64(value),
                (_, Ok(value)) => visitor.visit_u64(value),
                _ => Err(Fault::invalid_type(self.unexpected(), &visitor)),
            },
            TreeValue::Float(value) => visitor.visit_f64(*value),
            TreeValue::Boolean(value) => visitor.visit_bool(*value),
            TreeValue::Date => Err(Fault::invalid_type(self.unexpected(), &visitor)),
            TreeValue::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            TreeValue::Table(entries) => visitor.visit_map(Entries { entries, next: 0 }),
        };
        read.map_err(|fault| fault.at(self.0.origin))
    }

    /// A key that is present has a value: TOML has no null.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// Accepts only a table: derived visitors would also take an array, field by field.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0.value {
            TreeValue::Table(_) => self.deserialize_any(visitor),
            _ => Err(Fault::invalid_type(self.unexpected(), &"a table").at(self.0.origin)),
        }
    }

    /// Accepts only a string: an enum in a scenario file is a word.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let read = match &self.0.value {
            TreeValue::String(value) => visitor.visit_enum(value.as_str().into_deserializer()),
            _ => Err(Fault::invalid_type(
                self.unexpected(),
                &hints::one_of(variants).as_str(),
            )),
        };
        read.map_err(|fault| fault.at(self.0.origin))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'de> {
    items: &'de [TreeNode],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader(item))
            .map(Some)
            .map_err(|mut fault| {
                fault.path.insert(0, Segment::Index(index));
                fault
            })
    }
}

struct Entries<'de> {
    entries: &'de [TreeEntry],
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.get(self.next) else {
            return Ok(None);
        };
        seed.deserialize(BorrowedStrDeserializer::new(&entry.key))
            .map(Some)
            .map_err(|fault: Fault| fault.within(&entry.key).at(entry.origin))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        // serde asks for a value only after its key.
        let Some(entry) = self.entries.get(self.next) else {
            return Err(Fault::custom("a value without its key"));
        };
        self.next += 1;
        seed.deserialize(Reader(&entry.node))
            .map_err(|fault| fault.within(&entry.key))
    }
}
