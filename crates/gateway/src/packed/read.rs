//! Unpacking.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::Unpackable;

pub(super) struct Reader<'a> {
    /// What was not read yet.
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Unpackable> {
        let (first, rest) = self.bytes.split_first().ok_or(Unpackable)?;
        self.bytes = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, Unpackable> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number.wrapping_sub(1));
            }
        }
        Err(Unpackable)
    }

    fn whole<T: TryFrom<u64>>(&mut self) -> Result<T, Unpackable> {
        T::try_from(self.number()?).map_err(|_| Unpackable)
    }

    fn signed(&mut self) -> Result<i64, Unpackable> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn flag(&mut self) -> Result<bool, Unpackable> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Unpackable),
        }
    }

    fn raw(&mut self) -> Result<&'a [u8], Unpackable> {
        let length = self.whole()?;
        let (raw, rest) = self.bytes.split_at_checked(length).ok_or(Unpackable)?;
        self.bytes = rest;
        Ok(raw)
    }
}

/// So many parts that are still to come.
struct Parts<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Unpackable;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unpackable> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // No more than there can be.
        Some(self.left.min(self.reader.bytes.len()))
    }
}

impl<'de> de::MapAccess<'de> for Parts<'_, 'de> {
    type Error = Unpackable;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Unpackable> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Unpackable> {
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> de::EnumAccess<'de> for &mut Reader<'de> {
    type Error = Unpackable;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), Unpackable> {
        let variant: u32 = self.whole()?;
        Ok((seed.deserialize(variant.into_deserializer())?, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Reader<'de> {
    type Error = Unpackable;

    fn unit_variant(self) -> Result<(), Unpackable> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, Unpackable> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        de::Deserializer::deserialize_tuple(self, length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        de::Deserializer::deserialize_tuple(self, fields.len(), visitor)
    }
}

/// What is read as it is: `|reader| value`.
macro_rules! plainly {
    ($($method:ident: $visit:ident(|$reader:ident| $value:expr)),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unpackable> {
            let $reader = self;
            visitor.$visit($value)
        })+
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Unpackable;

    fn is_human_readable(&self) -> bool {
        false
    }

    plainly! {
        deserialize_bool: visit_bool(|reader| reader.flag()?),
        deserialize_i8: visit_i64(|reader| reader.signed()?),
        deserialize_i16: visit_i64(|reader| reader.signed()?),
        deserialize_i32: visit_i64(|reader| reader.signed()?),
        deserialize_i64: visit_i64(|reader| reader.signed()?),
        deserialize_u8: visit_u8(|reader| reader.byte()?),
        deserialize_u16: visit_u64(|reader| reader.number()?),
        deserialize_u32: visit_u64(|reader| reader.number()?),
        deserialize_u64: visit_u64(|reader| reader.number()?),
        deserialize_f32: visit_f32(|reader| f32::from_bits(reader.whole::<u32>()?.swap_bytes())),
        deserialize_f64: visit_f64(|reader| f64::from_bits(reader.number()?.swap_bytes())),
        deserialize_char: visit_char(|reader| {
            char::from_u32(reader.whole()?).ok_or(Unpackable)?
        }),
        deserialize_str: visit_borrowed_str(|reader| {
            std::str::from_utf8(reader.raw()?).map_err(|_| Unpackable)?
        }),
        deserialize_string: visit_borrowed_str(|reader| {
            std::str::from_utf8(reader.raw()?).map_err(|_| Unpackable)?
        }),
        deserialize_bytes: visit_borrowed_bytes(|reader| reader.raw()?),
        deserialize_byte_buf: visit_borrowed_bytes(|reader| reader.raw()?),
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unpackable> {
        if self.flag()? {
            visitor.visit_some(self)
        } else {
            visitor.visit_none()
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unpackable> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unpackable> {
        let left = self.whole()?;
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        visitor.visit_seq(Parts { reader: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unpackable> {
        let left = self.whole()?;
        visitor.visit_map(Parts { reader: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unpackable> {
        visitor.visit_enum(self)
    }

    // Nothing here says what it is.
    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unpackable> {
        Err(Unpackable)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unpackable> {
        Err(Unpackable)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unpackable> {
        Err(Unpackable)
    }
}
