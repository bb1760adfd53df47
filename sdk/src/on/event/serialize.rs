//! Arguments that are `serde::Serialize`.
//!
//! The value is serialized into a tree before the event is written: its `Serialize` is code of the program,
//! which may record events itself.

use hairline_formats::Value;
use serde::ser;
use serde::ser::Serialize;

use crate::on::event::argument::{Argument, Held};
use crate::on::event::tree::{Dict, MAX_DEPTH, Node, Row};
use crate::wrapped::Serialized;

impl<T: Serialize + ?Sized> Argument for Serialized<'_, T> {
    type Held<'a>
        = Tree
    where
        Self: 'a;
    fn hold(&self) -> Tree {
        Tree(self.0.serialize(Builder { depth: 0 }).unwrap_or_else(|e| Node::Str(e.0)))
    }
}

/// A serialized value.
#[derive(Debug)]
pub struct Tree(Node);

impl Held for Tree {
    const COLD_ONLY: bool = true;
    fn value(&self) -> Value<'_> {
        self.0.value()
    }
}

/// The error of a `Serialize`.
#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl ser::Error for Failure {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct Builder {
    depth: u32,
}

impl Builder {
    fn below(self) -> Self {
        Self { depth: self.depth + 1 }
    }

    fn node<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Failure> {
        if self.depth >= MAX_DEPTH { Ok(Node::too_deep()) } else { value.serialize(self.below()) }
    }
}

/// A sequence, map or struct that is being built. For an enum it is nested under the name of the variant.
struct Nest {
    builder: Builder,
    row: Row,
    dict: Dict,
    key: String,
    variant: Option<&'static str>,
}

impl Nest {
    fn new(builder: Builder, variant: Option<&'static str>) -> Self {
        Self { builder, row: Row::default(), dict: Dict::default(), key: String::new(), variant }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.row.0.push(self.builder.node(value)?);
        Ok(())
    }

    fn insert<T: Serialize + ?Sized>(&mut self, name: String, value: &T) -> Result<(), Failure> {
        self.dict.0.push((name, self.builder.node(value)?));
        Ok(())
    }

    fn wrap(variant: Option<&'static str>, node: Node) -> Node {
        match variant {
            Some(variant) => Node::Dict(Dict(vec![(variant.to_owned(), node)])),
            None => node,
        }
    }

    fn into_row(self) -> Node {
        Self::wrap(self.variant, Node::Row(self.row))
    }

    fn into_dict(self) -> Node {
        Self::wrap(self.variant, Node::Dict(self.dict))
    }
}

macro_rules! scalars {
    ($($method:ident($type:ty) => |$v:ident| $node:expr;)*) => {$(
        fn $method(self, $v: $type) -> Result<Node, Failure> {
            Ok($node)
        }
    )*};
}

impl ser::Serializer for Builder {
    type Ok = Node;
    type Error = Failure;
    type SerializeSeq = Nest;
    type SerializeTuple = Nest;
    type SerializeTupleStruct = Nest;
    type SerializeTupleVariant = Nest;
    type SerializeMap = Nest;
    type SerializeStruct = Nest;
    type SerializeStructVariant = Nest;

    scalars! {
        serialize_bool(bool) => |v| Node::Bool(v);
        serialize_i8(i8) => |v| Node::I64(v.into());
        serialize_i16(i16) => |v| Node::I64(v.into());
        serialize_i32(i32) => |v| Node::I64(v.into());
        serialize_i64(i64) => |v| Node::I64(v);
        serialize_i128(i128) => |v| Node::Str(v.to_string());
        serialize_u8(u8) => |v| Node::U64(v.into());
        serialize_u16(u16) => |v| Node::U64(v.into());
        serialize_u32(u32) => |v| Node::U64(v.into());
        serialize_u64(u64) => |v| Node::U64(v);
        serialize_u128(u128) => |v| Node::Str(v.to_string());
        serialize_f32(f32) => |v| Node::F64(v.into());
        serialize_f64(f64) => |v| Node::F64(v);
        serialize_char(char) => |v| Node::Str(v.to_string());
        serialize_str(&str) => |v| Node::Str(v.to_owned());
        serialize_bytes(&[u8]) => |v| Node::Bytes(v.to_vec());
    }

    fn serialize_none(self) -> Result<Node, Failure> {
        Ok(Node::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Failure> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Node, Failure> {
        Ok(Node::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Node, Failure> {
        Ok(Node::Str(name.to_owned()))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Node, Failure> {
        Ok(Node::Str(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Node, Failure> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Node, Failure> {
        Ok(Nest::wrap(Some(variant), self.node(value)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Nest, Failure> {
        Ok(Nest::new(self, None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Nest, Failure> {
        Ok(Nest::new(self, None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Nest, Failure> {
        Ok(Nest::new(self, None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nest, Failure> {
        Ok(Nest::new(self, Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Nest, Failure> {
        Ok(Nest::new(self, None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Nest, Failure> {
        Ok(Nest::new(self, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nest, Failure> {
        Ok(Nest::new(self, Some(variant)))
    }
}

macro_rules! rows {
    ($($trait:ident::$method:ident;)*) => {$(
        impl ser::$trait for Nest {
            type Ok = Node;
            type Error = Failure;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
                self.push(value)
            }
            fn end(self) -> Result<Node, Failure> {
                Ok(self.into_row())
            }
        }
    )*};
}

rows! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

macro_rules! structs {
    ($($trait:ident;)*) => {$(
        impl ser::$trait for Nest {
            type Ok = Node;
            type Error = Failure;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Failure> {
                self.insert(key.to_owned(), value)
            }
            fn end(self) -> Result<Node, Failure> {
                Ok(self.into_dict())
            }
        }
    )*};
}

structs! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Nest {
    type Ok = Node;
    type Error = Failure;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.key = key.serialize(self.builder)?.into_name();
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let key = std::mem::take(&mut self.key);
        self.insert(key, value)
    }
    fn end(self) -> Result<Node, Failure> {
        Ok(self.into_dict())
    }
}
