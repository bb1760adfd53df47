//! Names and nested values.

use super::*;
use hairline_formats::Entries;

/// A name that owns its text.
#[derive(Clone, Debug)]
pub(crate) enum OwnedName {
    Iid(u64),
    Text(String),
}

impl OwnedName {
    pub(crate) fn name(&self) -> Name<'_> {
        match self {
            Self::Iid(iid) => Name::Iid(*iid),
            Self::Text(text) => Name::Text(text),
        }
    }
}

pub(crate) fn name() -> impl Strategy<Value = OwnedName> {
    prop_oneof![unsigned().prop_map(OwnedName::Iid), text().prop_map(OwnedName::Text)]
}

/// Splits names into interned ids and texts.
pub(crate) fn split<'a>(names: impl IntoIterator<Item = &'a OwnedName>) -> (Vec<u64>, Vec<&'a str>) {
    let (mut iids, mut texts) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            OwnedName::Iid(iid) => iids.push(*iid),
            OwnedName::Text(text) => texts.push(text.as_str()),
        }
    }
    (iids, texts)
}

/// A value that owns its content and its nested values.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Leaf(Owned),
    Interned(u64, String),
    Dict(Named),
    Array(Named),
}

/// The content of a dict or an array.
#[derive(Clone, Debug)]
pub(crate) struct Named(pub(crate) Vec<(String, Tree)>);

impl Entries for Named {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|(name, tree)| show(name, tree.value()));
    }
}

impl Tree {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Leaf(leaf) => leaf.value(),
            Self::Interned(iid, text) => Value::Interned { iid: *iid, text },
            Self::Dict(entries) => Value::Dict(entries),
            Self::Array(entries) => Value::Array(entries),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value(), Value::Null)
    }

    /// The expected result of reading it, in the form of [`heard`].
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Leaf(leaf) => format!("{:?}", expected(&leaf.value()).value()),
            Self::Interned(iid, _) => format!("#{iid}"),
            Self::Dict(Named(all)) => {
                let all: Vec<_> = all.iter().filter(|(_, tree)| !tree.is_null()).collect();
                let entries = all.iter().map(|(name, tree)| format!("{name:?}:{},", tree.said_inside()));
                if all.is_empty() { said_text("{}") } else { format!("{{{}}}", entries.collect::<String>()) }
            }
            Self::Array(Named(all)) => {
                let entries = all.iter().map(|(_, tree)| format!("{},", tree.said_inside()));
                if all.is_empty() { said_text("[]") } else { format!("[{}]", entries.collect::<String>()) }
            }
        }
    }

    fn said_inside(&self) -> String {
        match self {
            Self::Interned(_, text) => said_text(text),
            tree if tree.is_null() => said_text("null"),
            tree => tree.said(),
        }
    }
}

fn said_text(text: &str) -> String {
    format!("{:?}", Value::Str(text))
}

/// All levels of a value that was read.
pub(crate) fn heard(value: &AnnotationValue<'_>) -> String {
    match value {
        AnnotationValue::Value(value) => format!("{value:?}"),
        AnnotationValue::StringIid(iid) => format!("#{iid}"),
        AnnotationValue::Dict(entries) => {
            let entries = all(entries.clone())
                .into_iter()
                .map(|a| format!("{:?}:{},", a.name.unwrap(), heard(&a.value)));
            format!("{{{}}}", entries.collect::<String>())
        }
        AnnotationValue::Array(values) => {
            let values = all(values.clone()).into_iter().map(|a| {
                assert!(a.name.is_none() && a.name_iid.is_none());
                format!("{},", heard(&a.value))
            });
            format!("[{}]", values.collect::<String>())
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        4 => value().prop_map(Tree::Leaf),
        1 => (unsigned(), text()).prop_map(|(iid, text)| Tree::Interned(iid, text)),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let entries = || prop::collection::vec((text(), inner.clone()), 0..5).prop_map(Named);
        prop_oneof![entries().prop_map(Tree::Dict), entries().prop_map(Tree::Array)]
    })
}

/// The value after the round trip: the format has no kernel object ids and no blobs.
fn expected(value: &Value<'_>) -> Owned {
    match *value {
        Value::Koid(v) => Owned::Plain(Value::U64(v)),
        Value::Blob(bytes) => Owned::Str(bytes.iter().map(|b| format!("{b:02x}")).collect()),
        Value::Str(text) => Owned::Str(text.to_owned()),
        Value::Null => Owned::Plain(Value::Null),
        Value::Bool(v) => Owned::Plain(Value::Bool(v)),
        Value::I64(v) => Owned::Plain(Value::I64(v)),
        Value::U64(v) => Owned::Plain(Value::U64(v)),
        Value::F64(v) => Owned::Plain(Value::F64(v)),
        Value::Pointer(v) => Owned::Plain(Value::Pointer(v)),
        Value::Dict(_) | Value::Array(_) | Value::Interned { .. } => unreachable!("`value` makes none"),
    }
}

#[test]
fn nested_values_are_read_back_at_any_depth() {
    let mut deep = Tree::Leaf(Owned::Plain(Value::U64(1)));
    for level in 0..40 {
        let named = Named(vec![("a".to_owned(), deep)]);
        deep = if level % 2 == 0 { Tree::Array(named) } else { Tree::Dict(named) };
    }
    let mut out = Vec::new();
    te::event(&mut out, &Event { annotations: &[(Name::Iid(3), deep.value())], ..BEGIN });
    with_event(&out, |event| {
        let annotation = event.annotations().next().unwrap().unwrap();
        let cut = format!("{}{}{}", r#"{"a":["#.repeat(16), said_text("..."), ",],}".repeat(16));
        assert_eq!(heard(&annotation.value), cut);
    });
}

#[test]
fn empty_values_and_null_are_read_back() {
    let nested = nested_value();
    let mut out = Vec::new();
    te::event(&mut out, &Event { annotations: &[(Name::Iid(3), nested.value())], ..BEGIN });
    with_event(&out, |event| {
        let annotation = event.annotations().next().unwrap().unwrap();
        let expected = r#"{"a":[{"c":Bool(true),"d":Str("{}"),},Str("null"),Str("[]"),],"e":Str("{}"),}"#;
        assert_eq!(heard(&annotation.value), expected);
    });
}
