//! Written items are read back.

use super::*;

fn id() -> impl Strategy<Value = Id<'static>> {
    prop_oneof![
        unsigned().prop_map(Id::Number),
        (i64::MIN..0).prop_map(Id::Negative),
        text().prop_map(|text| Id::Text(text.into())),
    ]
}

fn some_id() -> impl Strategy<Value = Option<Id<'static>>> {
    prop::option::of(id())
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop::option::of(prop_oneof![unsigned().prop_map(u64::cast_signed), -1_000_000..1_000_000_i64])
}

fn phase() -> impl Strategy<Value = Option<Phase>> {
    prop_oneof![
        9 => prop::sample::select(Phase::ALL.to_vec()).prop_map(Some),
        1 => any::<char>().prop_map(|letter| Some(Phase::from_letter(letter))),
        1 => Just(None),
    ]
}

fn json() -> impl Strategy<Value = Option<Json<'static>>> {
    prop::option::of(prop::sample::select(vec![r#"["a",{"b":[]}]"#, "{}", "5", r#""\ud800""#]))
        .prop_map(|text| text.and_then(Json::new))
}

/// The value after the round trip.
fn expected(value: &Value<'_>) -> String {
    match *value {
        Value::U64(number) | Value::Koid(number) => match i64::try_from(number) {
            Ok(number) => format!("{:?}", Value::I64(number)),
            Err(_) => format!("{:?}", Value::U64(number)),
        },
        Value::F64(number) if !number.is_finite() => format!("{:?}", Value::Str(&number.to_string())),
        Value::Pointer(address) => format!("{:?}", Value::Str(&format!("{address:#x}"))),
        Value::Blob(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:?}", Value::Str(&hex))
        }
        ref other => format!("{other:?}"),
    }
}

struct Owner(Vec<(String, Owned)>);

impl Entries for Owner {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|(name, value)| show(name, value.value()));
    }
}

proptest! {
    #[test]
    fn an_event_is_read_back(
        (name, cat, scope, bp, cname) in (text(), text(), text(), text(), text()),
        (ph, s) in (phase(), prop::option::of(any::<char>().prop_map(InstantScope::from_letter))),
        (ts, dur, tts, tdur) in (time(), time(), time(), time()),
        (pid, tid, id, bind_id) in (some_id(), some_id(), some_id(), some_id()),
        (local, global, sf, esf) in (some_id(), some_id(), some_id(), some_id()),
        (stack, estack, args) in (json(), json(), json()),
        (flow_in, flow_out) in (any::<bool>(), any::<bool>()),
    ) {
        let event = Event {
            name: name.into(), cat: cat.into(), ph, ts, dur, tts, tdur, pid, tid, id, id2: Id2 { local, global },
            scope: scope.into(), args: args.map_or(Args::None, Args::Json), bp: bp.into(), s, sf, stack, esf, estack,
            cname: cname.into(), bind_id, flow_in, flow_out, skipped: 0,
        };
        let mut writer = JsonWriter::array(Vec::new());
        writer.event(&event).unwrap();
        let trace = writer.finish().unwrap();
        let mut reader = JsonReader::new(&trace[..]);
        prop_assert_eq!(reader.next().unwrap(), Some((2, Item::Event(event))));
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn arguments_are_read_back(all in prop::collection::vec((text(), value()), 0..8)) {
        let list: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.value())).collect();
        let owner = Owner(all.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
        let nested = [("dict", Value::Dict(&owner)), ("array", Value::Array(&owner))];
        let mut writer = JsonWriter::array(Vec::new());
        for args in [&list[..], &nested] {
            writer.event(&Event { args: Args::List(args), ..Event::default() }).unwrap();
        }
        let trace = writer.finish().unwrap();
        let mut reader = JsonReader::new(&trace[..]);
        let expected: Vec<_> = list.iter().map(|(name, value)| ((*name).to_owned(), expected(value))).collect();
        match reader.next().unwrap() {
            Some((_, Item::Event(event))) => prop_assert_eq!(shown(&event.args), expected.clone()),
            other => panic!("{other:?}"),
        }
        let Some((_, Item::Event(event))) = reader.next().unwrap() else { panic!() };
        let mut levels = 0;
        event.args.each(|name, value| {
            let mut found = Vec::new();
            match value {
                Value::Dict(all) | Value::Array(all) => all.each(&mut |name, value| found.push((name.to_owned(), format!("{value:?}")))),
                other => panic!("{other:?}"),
            }
            let named = name == "dict";
            let expected: Vec<_> = expected.iter().map(|(name, value)| (if named { name.clone() } else { String::new() }, value.clone())).collect();
            assert_eq!(found, expected);
            levels += 1;
        });
        assert_eq!(levels, 2);
    }

    #[test]
    fn times_in_decimals_are_exact(ns in any::<i64>(), zeros in 0..5_usize) {
        let (sign, size) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
        let text = format!("{sign}{}.{:03}{}", size / 1000, size % 1000, "0".repeat(zeros));
        with_event(&format!("{{\"ts\":{text},\"dur\":\"{text}\"}}"), |event| {
            assert_eq!((event.ts, event.dur), (Some(ns), Some(ns)));
        });
    }
}

fn shown(args: &Args<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    args.each(|name, value| all.push((name.to_owned(), format!("{value:?}"))));
    all
}
