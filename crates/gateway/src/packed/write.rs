//! Packing.

use serde::ser::{self, Serialize};

use super::Unpackable;

pub(super) struct Writer<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
}

impl Writer<'_> {
    fn number(&mut self, number: u64) {
        let mut rest = number.wrapping_add(1);
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

type Done = Result<(), Unpackable>;

impl ser::Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = Unpackable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Done {
        self.serialize_u8(value.into())
    }

    fn serialize_i8(self, value: i8) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Done {
        // Zigzag: what is nearly nothing is short, whatever its sign.
        self.serialize_u64(((value << 1) ^ (value >> 63)) as u64)
    }

    fn serialize_u8(self, value: u8) -> Done {
        self.bytes.push(value);
        Ok(())
    }

    fn serialize_u16(self, value: u16) -> Done {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Done {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Done {
        self.number(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.serialize_u64(value.to_bits().swap_bytes().into())
    }

    fn serialize_f64(self, value: f64) -> Done {
        // Of round numbers the last bits are 0.
        self.serialize_u64(value.to_bits().swap_bytes())
    }

    fn serialize_char(self, value: char) -> Done {
        self.serialize_u64(u32::from(value).into())
    }

    fn serialize_str(self, value: &str) -> Done {
        self.raw(value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.raw(value);
        Ok(())
    }

    fn serialize_none(self) -> Done {
        self.serialize_u8(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        self.bytes.push(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Done {
        self.serialize_u32(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Done {
        self.number(variant.into());
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Unpackable> {
        self.number(length.ok_or(Unpackable)? as u64);
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unpackable> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unpackable> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unpackable> {
        self.number(variant.into());
        Ok(self)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self, Unpackable> {
        self.serialize_seq(length)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unpackable> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unpackable> {
        self.number(variant.into());
        Ok(self)
    }
}

/// What consists of parts: one after the other.
macro_rules! parts {
    ($($trait:ident: $method:ident($($name:ty)?)),+ $(,)?) => {
        $(impl ser::$trait for &mut Writer<'_> {
            type Ok = ();
            type Error = Unpackable;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Done {
                value.serialize(&mut **self)
            }

            fn end(self) -> Done {
                Ok(())
            }
        })+
    };
}

parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(&'static str),
    SerializeStructVariant: serialize_field(&'static str),
}

impl ser::SerializeMap for &mut Writer<'_> {
    type Ok = ();
    type Error = Unpackable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut **self)
    }

    fn end(self) -> Done {
        Ok(())
    }
}
