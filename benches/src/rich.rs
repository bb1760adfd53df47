//! The cost of events whose content the program's own code makes: names made at run time, arguments at the
//! end, nested arguments, and text by `Display` and `Debug`.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::net::Ipv4Addr;

use hairline::{trace_instant, trace_scope};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::floors::{one_read, row, two_reads};
use crate::row::{Budget, Row};
use crate::text::text;
use crate::timing::Effort;

/// What a program would derive.
struct Request {
    id: u64,
    peer: Peer,
}

struct Peer {
    host: &'static str,
    port: u16,
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Request", 2)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("peer", &self.peer)?;
        fields.end()
    }
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Peer", 2)?;
        fields.serialize_field("host", self.host)?;
        fields.serialize_field("port", &self.port)?;
        fields.end()
    }
}

/// Formats into memory of the stack, and reads the clock.
fn formatted(arguments: fmt::Arguments<'_>) {
    black_box(text(arguments));
    one_read(0);
}

/// Measures them while the drain thread drains them.
pub(crate) fn rows(effort: Effort, name: &impl Fn(&str) -> String) -> Vec<Row> {
    let effort = Effort { operations: effort.operations / 4, ..effort };
    let sixteen = black_box("sixteen bytes ..");
    let ten = black_box("ten bytes.".to_owned());
    let sizes = black_box(BTreeMap::from([("read", 1), ("sent", 2)]));
    let request = black_box(Request { id: 7, peer: Peer { host: "db1", port: 5432 } });
    let (address, pair) = (black_box(Ipv4Addr::new(192, 168, 1, 17)), black_box((1, "one")));
    let within = |budget: f64, what: &str, subject: &mut dyn FnMut(u32)| {
        row(&name(what), effort, budget, Budget::Ratio, two_reads, subject)
    };
    let over = |what: &str, floor: &mut dyn FnMut(u32), subject: &mut dyn FnMut(u32)| {
        row(&name(what), effort, 10.0, Budget::Over, floor, subject)
    };
    vec![
        within(1.3, "scope, named at run time", &mut |_| {
            trace_scope!("bench", "scope", name: &ten);
        }),
        within(1.3, "scope + i64 at the end", &mut |i| {
            let mut scope = hairline::scope!("bench", "late");
            scope.arg("number", i64::from(i));
        }),
        within(1.6, "scope + [i32; 2]", &mut |i| {
            trace_scope!("bench", "array", list = [i.cast_signed(), 2]);
        }),
        within(1.8, "scope + map of two", &mut |_| {
            trace_scope!("bench", "map", sizes);
        }),
        within(2.5, "scope + struct in a struct, by serde", &mut |_| {
            trace_scope!("bench", "struct", request = hairline::serialize(&request));
        }),
        within(2.2, "scope + [i32; 2] + argument at the end", &mut |i| {
            let mut scope = hairline::scope!("bench", "nested", list = [i, i]);
            scope.arg("text", sixteen);
        }),
        over("instant + %Ipv4Addr", &mut |_| formatted(format_args!("{address}")), &mut |_| {
            trace_instant!("bench", "displayed", peer = %address);
        }),
        over("instant + ?(i32, &str)", &mut |_| formatted(format_args!("{pair:?}")), &mut |_| {
            trace_instant!("bench", "debugged", pair = ?pair);
        }),
    ]
}
