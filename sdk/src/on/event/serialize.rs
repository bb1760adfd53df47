//! Arguments that are `serde::Serialize`.
//!
//! The value is serialized into a tree before the event is written: its `Serialize` is code of the program,
//! which may record events itself.

use hairline_formats::Value;
use serde::ser;
use serde::ser::Serialize;

use crate::on::event::argument::{Argument, Held};
use crate::on::event::text::Text;
use crate::on::event::tree;
use crate::on::event::tree::{MAX_DEPTH, NestKind, Open};
use crate::wrapped::Serialized;

impl<T: Serialize + ?Sized> Argument for Serialized<'_, T> {
    type Held<'a>
        = Tree
    where
        Self: 'a;
    fn hold(&self) -> Tree {
        let mut tree = tree::Tree::new();
        if let Err(e) = self.0.serialize(Builder { tree: &mut tree, depth: 0 }) {
            tree.set(&Value::Str(&e.0));
        }
        Tree(tree)
    }
}

/// A serialized value.
#[derive(Debug)]
pub struct Tree(tree::Tree);

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

/// Writes one value to the tree.
struct Builder<'t> {
    tree: &'t mut tree::Tree,
    depth: u32,
}

impl<'t> Builder<'t> {
    fn scalar(self, value: &Value<'_>) -> Result<(), Failure> {
        self.tree.put_scalar(value);
        Ok(())
    }

    /// Begins an array or a map. For an enum it is nested under the name of the variant.
    fn nest(mut self, kind: NestKind, variant: Option<&'static str>) -> Nest<'t> {
        let variant = variant.map(|name| self.begin_variant(name));
        let open = self.tree.begin(kind);
        Nest { tree: self.tree, depth: self.depth, open, variant, name_at: None }
    }
}

impl Builder<'_> {
    fn begin_variant(&mut self, name: &'static str) -> Open {
        let open = self.tree.begin(NestKind::Map);
        self.tree.put_scalar(&Value::Str(name));
        open
    }
}

/// Writes a value that is nested in one of `depth`. If it fails, the tree stays as it was.
fn put_nested<T: Serialize + ?Sized>(tree: &mut tree::Tree, depth: u32, value: &T) -> Result<(), Failure> {
    if depth >= MAX_DEPTH {
        tree.put_too_deep();
        return Ok(());
    }
    let at = tree.position();
    let written = value.serialize(Builder { tree, depth: depth + 1 });
    if written.is_err() {
        tree.truncate(at);
    }
    written
}

/// A sequence, map or struct that is being written.
struct Nest<'t> {
    tree: &'t mut tree::Tree,
    depth: u32,
    open: Open,
    /// The map with the name of the variant.
    variant: Option<Open>,
    /// The name of the next entry, which has no value yet.
    name_at: Option<usize>,
}

impl Nest<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        put_nested(self.tree, self.depth, value)
    }

    fn insert<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Failure> {
        self.name_at = Some(self.tree.position());
        self.tree.put_scalar(&Value::Str(name));
        self.value(value)
    }

    /// Writes the value of the entry whose name was written last.
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        if self.name_at.is_none() {
            self.name_at = Some(self.tree.position());
            self.tree.put_scalar(&Value::Str(""));
        }
        let written = put_nested(self.tree, self.depth, value);
        if written.is_err() {
            self.drop_name();
        }
        self.name_at = None;
        written
    }

    /// Removes a name that gets no value.
    fn drop_name(&mut self) {
        if let Some(at) = self.name_at.take() {
            self.tree.truncate(at);
        }
    }

    fn finish(mut self) {
        self.drop_name();
        self.tree.end(self.open);
        if let Some(variant) = self.variant {
            self.tree.end(variant);
        }
    }
}

macro_rules! scalars {
    ($($method:ident($type:ty) => |$v:ident| $value:expr;)*) => {$(
        fn $method(self, $v: $type) -> Result<(), Failure> {
            self.scalar(&$value)
        }
    )*};
}

impl<'t> ser::Serializer for Builder<'t> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Nest<'t>;
    type SerializeTuple = Nest<'t>;
    type SerializeTupleStruct = Nest<'t>;
    type SerializeTupleVariant = Nest<'t>;
    type SerializeMap = Nest<'t>;
    type SerializeStruct = Nest<'t>;
    type SerializeStructVariant = Nest<'t>;

    scalars! {
        serialize_bool(bool) => |v| Value::Bool(v);
        serialize_i8(i8) => |v| Value::I64(v.into());
        serialize_i16(i16) => |v| Value::I64(v.into());
        serialize_i32(i32) => |v| Value::I64(v.into());
        serialize_i64(i64) => |v| Value::I64(v);
        serialize_i128(i128) => |v| Text::display(&v).value();
        serialize_u8(u8) => |v| Value::U64(v.into());
        serialize_u16(u16) => |v| Value::U64(v.into());
        serialize_u32(u32) => |v| Value::U64(v.into());
        serialize_u64(u64) => |v| Value::U64(v);
        serialize_u128(u128) => |v| Text::display(&v).value();
        serialize_f32(f32) => |v| Value::F64(v.into());
        serialize_f64(f64) => |v| Value::F64(v);
        serialize_char(char) => |v| Value::Str(v.encode_utf8(&mut [0; 4]));
        serialize_str(&str) => |v| Value::Str(v);
        serialize_bytes(&[u8]) => |v| Value::Blob(v);
    }

    fn serialize_none(self) -> Result<(), Failure> {
        self.scalar(&Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Failure> {
        self.scalar(&Value::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Failure> {
        self.scalar(&Value::Str(name))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Failure> {
        self.scalar(&Value::Str(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        let open = self.begin_variant(variant);
        put_nested(self.tree, self.depth, value)?;
        self.tree.end(open);
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Array, None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Array, None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Array, None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Array, Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Map, None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Map, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nest<'t>, Failure> {
        Ok(self.nest(NestKind::Map, Some(variant)))
    }
}

macro_rules! rows {
    ($($trait:ident::$method:ident;)*) => {$(
        impl ser::$trait for Nest<'_> {
            type Ok = ();
            type Error = Failure;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
                self.push(value)
            }
            fn end(self) -> Result<(), Failure> {
                self.finish();
                Ok(())
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
        impl ser::$trait for Nest<'_> {
            type Ok = ();
            type Error = Failure;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Failure> {
                self.insert(key, value)
            }
            fn end(self) -> Result<(), Failure> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

structs! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Nest<'_> {
    type Ok = ();
    type Error = Failure;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.drop_name();
        let at = self.tree.position();
        put_nested(self.tree, self.depth, key)?;
        self.tree.make_name(at);
        self.name_at = Some(at);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.value(value)
    }
    fn end(self) -> Result<(), Failure> {
        self.finish();
        Ok(())
    }
}
