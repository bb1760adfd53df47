//! Written items are read back.

use super::values::{OwnedName, heard, name, split, tree};
use super::*;

fn counter() -> impl Strategy<Value = Option<CounterValue>> {
    prop_oneof![
        Just(None),
        unsigned().prop_map(|v| Some(CounterValue::Int(v as i64))),
        (-1e300..1e300_f64).prop_map(|v| Some(CounterValue::Double(v))),
    ]
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(unsigned(), 0..4)
}

/// A source location that owns its strings.
type Place = (String, String, u32);

fn place() -> impl Strategy<Value = Place> {
    (text(), text(), prop_oneof![Just(0), any::<u32>()])
}

fn at((file, function, line): &Place) -> SourceLocation<'_> {
    SourceLocation { file, function, line: *line }
}

fn log() -> impl Strategy<Value = LogMessage> {
    (unsigned(), 0..=7_u64, unsigned()).prop_map(|(body_iid, priority, source_location_iid)| LogMessage {
        body_iid,
        priority: Priority::from_number(priority).unwrap(),
        source_location_iid,
    })
}

proptest! {
    #[test]
    fn an_event_is_read_back(
        sequence in (1..=u32::MAX).prop_map(SequenceId),
        timestamp in unsigned(),
        (clock_id, needs_state) in (prop::option::of(any::<u32>()), any::<bool>()),
        kind in (1..=4_u64).prop_map(|n| EventType::from_number(n).unwrap()),
        (categories, name) in (prop::collection::vec(name(), 0..4), prop::option::of(name())),
        track_uuid in prop::option::of(track_uuid()),
        counter in counter(),
    ) {
        let category_names: Vec<_> = categories.iter().map(OwnedName::name).collect();
        let event = Event {
            clock_id, needs_state, categories: &category_names, name: name.as_ref().map(OwnedName::name), track_uuid,
            counter, ..Event::new(sequence, kind, timestamp)
        };
        let mut out = Vec::new();
        te::event(&mut out, &event);
        with_packet(&out, |packet| {
            assert_eq!((packet.sequence, packet.timestamp, packet.clock_id), (sequence, Some(timestamp), clock_id));
            let flags = if needs_state { sequence_flags::NEEDS } else { 0 };
            assert_eq!((packet.flags, packet.first, packet.dropped), (flags, false, false));
            assert!(packet.defaults.is_none() && packet.interned().next().is_none());
        });
        with_event(&out, |read| {
            assert_eq!((read.kind, read.track_uuid, read.counter), (Some(kind), track_uuid, counter));
            assert_eq!(read.name_iid.map(Name::Iid).or(read.name.map(Name::Text)), event.name);
            assert!(read.name_iid.is_none() || read.name.is_none());
            let (iids, texts) = split(&categories);
            assert_eq!(all(read.category_iids()), iids);
            assert_eq!(all(read.categories()), texts);
            assert!(read.annotations().next().is_none() && read.flow_ids().next().is_none());
            assert_eq!((read.correlation, read.location, read.log, read.skipped), (None, None, None, 0));
        });
    }

    #[test]
    fn references_of_an_event_are_read_back(
        extra in numbers(),
        (flows, ends) in (numbers(), numbers()),
        correlation in prop::option::of(prop_oneof![unsigned().prop_map(Err), name().prop_map(Ok)]),
        location in prop::option::of(prop_oneof![unsigned().prop_map(Err), place().prop_map(Ok)]),
        log in prop::option::of(log()),
    ) {
        let extra: Vec<_> = extra.into_iter().map(u64::cast_signed).collect();
        let event = Event {
            extra_counters: &extra,
            flow_ids: &flows,
            terminating_flow_ids: &ends,
            correlation: correlation.as_ref().map(|c| match c {
                Ok(name) => Correlation::Name(name.name()),
                Err(id) => Correlation::Id(*id),
            }),
            location: location.as_ref().map(|l| match l {
                Ok(place) => Location::At(at(place)),
                Err(iid) => Location::Iid(*iid),
            }),
            log,
            ..BEGIN
        };
        let mut out = Vec::new();
        te::event(&mut out, &event);
        with_event(&out, |read| {
            assert_eq!(all(read.extra_counters()), extra);
            assert!(read.extra_counter_track_uuids().next().is_none());
            assert_eq!((all(read.flow_ids()), all(read.terminating_flow_ids())), (flows.clone(), ends.clone()));
            assert_eq!((read.correlation, read.location, read.log), (event.correlation, event.location, event.log));
            assert_eq!(read.skipped, 0);
        });
    }

    #[test]
    fn annotations_are_read_back(owned in prop::collection::vec((name(), tree()), 0..10)) {
        let annotations: Vec<_> = owned.iter().map(|(name, tree)| (name.name(), tree.value())).collect();
        let mut out = Vec::new();
        te::event(&mut out, &Event { annotations: &annotations, ..BEGIN });
        with_event(&out, |read| {
            let mut kept = owned.iter().filter(|(_, tree)| !tree.is_null());
            for annotation in read.annotations() {
                let annotation = annotation.unwrap();
                let (name, tree) = kept.next().unwrap();
                assert_eq!(annotation.name_iid.map(Name::Iid).or(annotation.name.map(Name::Text)), Some(name.name()));
                assert_eq!(heard(&annotation.value), tree.said());
            }
            assert!(kept.next().is_none());
            assert_eq!(read.skipped, 0);
        });
    }

    #[test]
    fn an_annotation_has_the_announced_length(iid in unsigned(), value in value()) {
        let mut out = Vec::new();
        te::put_annotation(&mut out, iid, &value.value());
        prop_assert_eq!(out.len(), te::annotation_len(iid, &value.value()));
        let mut fields = proto::Fields::new(&out, 0);
        let field = fields.next().unwrap().unwrap();
        prop_assert_eq!(field.number, fields::track_event::DEBUG_ANNOTATIONS);
        prop_assert!(fields.next().is_none());
    }

    #[test]
    fn interned_data_is_read_back(
        all in prop::collection::vec((unsigned(), place(), 0..7), 0..14),
    ) {
        let strings: Vec<_> = all.iter().map(|(iid, place, kind)| {
            let (iid, name) = (*iid, place.0.as_str());
            let kinds = [1, 2, 3, 20, 29, 43].map(|number| InternedKind::from_number(number).unwrap());
            match kinds.get(*kind as usize) {
                Some(kind) => Interned::Text { kind: *kind, iid, name },
                None => Interned::Location { iid, at: at(place) },
            }
        }).collect();
        let mut out = Vec::new();
        te::interned(&mut out, SequenceId(9), &strings);
        with_packet(&out, |packet| {
            assert!(packet.data.is_none());
            assert_eq!(packet.interned().map(Result::unwrap).collect::<Vec<_>>(), strings);
        });
    }
}
