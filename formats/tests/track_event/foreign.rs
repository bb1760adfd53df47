//! Traces of other writers, and of newer ones.

use super::*;
use fields::{debug_annotation as annotation, track_event as event};

fn packet(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_message(&mut out, trace::PACKET, write);
    out
}

#[test]
fn varints_that_are_not_in_their_shortest_form_are_read() {
    // A packet of 3 fields, with a padded length, sequence and timestamp.
    let trace = [0x0a, 0x88, 0x80, 0x00, 0x50, 0x83, 0x80, 0x00, 0x40, 0x81, 0x80, 0x00];
    with_packet(&trace, |packet| assert_eq!((packet.sequence, packet.timestamp), (SequenceId(3), Some(1))));
}

#[test]
fn unknown_fields_are_passed_over_and_counted() {
    let mut trace = Vec::new();
    put_uint(&mut trace, 7, 7);
    put_str(&mut trace, 8, "a field of the trace that is no packet");
    proto::put_fixed64(&mut trace, 9, 9);
    trace.extend(packet(|p| {
        put_uint(p, 4000, 1);
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_uint(e, event::TYPE, 99);
            put_str(e, event::NAME, "x");
            put_str(e, 4001, "y");
        });
        put_str(p, 4002, "z");
    }));
    let mut reader = PacketReader::new(&trace[..]);
    let (_, packet) = reader.next().unwrap().unwrap();
    let Some(PacketData::Event(event)) = &packet.data else { panic!("{packet:?}") };
    assert_eq!((packet.skipped, event.skipped, event.kind, event.name), (2, 1, None, Some("x")));
    assert_eq!(reader.skipped(), 3);
}

#[test]
fn unknown_data_is_returned_as_bytes() {
    let trace = packet(|p| put_str(p, 33, "config"));
    with_packet(&trace, |packet| {
        assert!(
            matches!(packet.data, Some(PacketData::Other { field: 33, bytes: b"config", offset: 5 })),
            "{packet:?}"
        );
        assert_eq!(packet.bytes(), &trace[2..]);
    });
}

#[test]
fn inline_names_and_packed_numbers_are_read() {
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_str(e, event::CATEGORIES, "a");
            put_str(e, event::CATEGORIES, "b");
            put_bytes(e, event::CATEGORY_IIDS, &[1, 0x96, 0x01]);
            put_uint(e, event::CATEGORY_IIDS, 3);
            proto::put_fixed64(e, event::FLOW_IDS, 9);
            put_bytes(e, event::TERMINATING_FLOW_IDS, &7_u64.to_le_bytes());
            put_bytes(
                e,
                event::EXTRA_COUNTER_VALUES,
                &[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            );
            put_uint(e, event::EXTRA_COUNTER_VALUES, 6);
            put_bytes(e, event::EXTRA_COUNTER_TRACK_UUIDS, &[8, 9]);
        });
    });
    with_event(&trace, |e| {
        assert_eq!(e.categories().map(Result::unwrap).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(e.category_iids().map(Result::unwrap).collect::<Vec<_>>(), [1, 150, 3]);
        assert_eq!(e.flow_ids().map(Result::unwrap).collect::<Vec<_>>(), [9]);
        assert_eq!(e.terminating_flow_ids().map(Result::unwrap).collect::<Vec<_>>(), [7]);
        assert_eq!(all(e.extra_counters()), [5, -1, 6]);
        assert_eq!(all(e.extra_counter_track_uuids()), [TrackUuid(8), TrackUuid(9)]);
        assert_eq!(e.skipped, 0);
    });
}

#[test]
fn dicts_and_arrays_are_read_to_any_depth() {
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_message(e, event::DEBUG_ANNOTATIONS, |a| {
                put_str(a, annotation::NAME, "map");
                put_message(a, annotation::DICT_ENTRIES, |entry| {
                    put_str(entry, annotation::NAME, "list");
                    for value in 1..=3 {
                        put_message(entry, annotation::ARRAY_VALUES, |v| {
                            put_uint(v, annotation::UINT_VALUE, value);
                        });
                    }
                });
            });
        });
    });
    with_event(&trace, |e| {
        let map = e.annotations().next().unwrap().unwrap();
        let AnnotationValue::Dict(mut entries) = map.value else { panic!("{map:?}") };
        let list = entries.next().unwrap().unwrap();
        let AnnotationValue::Array(values) = list.value else { panic!("{list:?}") };
        let values: Vec<_> = values.map(|v| v.unwrap().value).collect();
        assert_eq!((map.name, list.name), (Some("map"), Some("list")));
        assert!(matches!(values[..], [_, AnnotationValue::Value(Value::U64(2)), _]), "{values:?}");
    });
}

/// As Chrome wrote them before `dict_entries`: the keys before the values, or each before its own.
#[test]
fn values_that_an_older_tracer_has_nested_are_read() {
    use fields::nested_value as nested;
    let leaf = |out: &mut Vec<u8>, field, value| {
        put_message(out, field, |v| put_uint(v, nested::INT_VALUE, value));
    };
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_message(e, event::DEBUG_ANNOTATIONS, |a| {
                put_str(a, annotation::NAME, "map");
                put_message(a, annotation::NESTED_VALUE, |dict| {
                    put_uint(dict, nested::NESTED_TYPE, 1);
                    put_str(dict, nested::DICT_KEYS, "list");
                    put_message(dict, nested::DICT_VALUES, |list| {
                        put_uint(list, nested::NESTED_TYPE, 2);
                        leaf(list, nested::ARRAY_VALUES, 1);
                        leaf(list, nested::ARRAY_VALUES, 2);
                    });
                    put_str(dict, nested::DICT_KEYS, "text");
                    put_message(dict, nested::DICT_VALUES, |v| {
                        put_bytes(v, nested::STRING_VALUE, b"caf\xe9");
                    });
                    put_message(dict, nested::DICT_VALUES, |v| put_uint(v, nested::BOOL_VALUE, 1));
                });
            });
        });
    });
    with_event(&trace, |e| {
        let map = e.annotations().next().unwrap().unwrap();
        let AnnotationValue::Nested(NestedValue::Dict(entries)) = map.value else { panic!("{map:?}") };
        let entries: Vec<_> = entries.map(Result::unwrap).collect();
        let [("list", NestedValue::Array(list)), text, last] = &entries[..] else { panic!("{entries:?}") };
        let list: Vec<_> = list.clone().map(Result::unwrap).collect();
        assert!(matches!(list[..], [("", NestedValue::Value(Value::I64(1))), _]), "{list:?}");
        assert!(matches!(text, ("text", NestedValue::Value(Value::Blob(b"caf\xe9")))), "{text:?}");
        assert!(matches!(last, ("", NestedValue::Value(Value::Bool(true)))), "{last:?}");
    });
}

#[test]
fn the_older_flag_for_a_cleared_state_is_read() {
    let trace = packet(|p| put_uint(p, trace_packet::INCREMENTAL_STATE_CLEARED, 1));
    with_packet(&trace, |packet| assert_eq!(packet.flags, sequence_flags::CLEARED));
}

#[test]
fn a_field_of_the_wrong_wire_type_is_passed_over() {
    let trace = packet(|p| put_uint(p, trace_packet::TRACK_EVENT, 1));
    let mut reader = PacketReader::new(&trace[..]);
    let (_, packet) = reader.next().unwrap().unwrap();
    assert!(packet.data.is_none() && packet.skipped == 1);
}

#[test]
fn text_that_is_not_utf8_is_no_error() {
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_bytes(e, event::NAME, b"name\xff");
            put_message(e, event::DEBUG_ANNOTATIONS, |a| put_bytes(a, annotation::STRING_VALUE, b"\xff"));
        });
    });
    with_event(&trace, |e| {
        let annotation = e.annotations().next().unwrap().unwrap();
        assert_eq!(e.name, Some("name"));
        assert!(matches!(annotation.value, AnnotationValue::Value(Value::Blob(b"\xff"))));
    });
}

#[test]
fn an_unknown_priority_and_fields_beside_it_are_counted() {
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_message(e, event::LOG_MESSAGE, |l| {
                put_uint(l, fields::log_message::PRIO, 99);
                put_uint(l, fields::log_message::BODY_IID, 5);
                put_uint(l, 4001, 1);
            });
            put_message(e, event::SOURCE_LOCATION, |l| {
                put_uint(l, fields::source_location::IID, 7);
                put_str(l, fields::source_location::FILE_NAME, "a.rs");
                put_uint(l, 4001, 1);
            });
            put_str(e, event::CORRELATION_ID, "not a number");
        });
    });
    with_event(&trace, |e| {
        let log = te::LogMessage { body_iid: 5, priority: te::Priority::Unspecified, source_location_iid: 0 };
        let at = te::SourceLocation { file: "a.rs", ..te::SourceLocation::default() };
        assert_eq!((e.log, e.location), (Some(log), Some(te::Location::At(at))));
        assert_eq!((e.correlation, e.skipped), (None, 4));
    });
}

#[test]
fn the_last_of_alternatives_counts() {
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_EVENT, |e| {
            put_uint(e, event::CORRELATION_ID, 1);
            put_str(e, event::CORRELATION_ID_STR, "two");
            put_message(e, event::SOURCE_LOCATION, |_| {});
            put_uint(e, event::SOURCE_LOCATION_IID, 4);
        });
    });
    with_event(&trace, |e| {
        assert_eq!(e.correlation, Some(te::Correlation::Name(Name::Text("two"))));
        assert_eq!((e.location, e.skipped), (Some(te::Location::Iid(4)), 0));
    });
}

#[test]
fn keys_of_tracks_are_read_and_unknown_numbers_are_none() {
    use fields::{counter_descriptor as counter, track_descriptor as track};
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACK_DESCRIPTOR, |t| {
            put_uint(t, track::CHILD_ORDERING, 99);
            put_uint(t, track::SIBLING_MERGE_BEHAVIOR, 99);
            put_str(t, track::SIBLING_MERGE_KEY, "row");
            put_message(t, track::COUNTER, |c| {
                put_uint(c, counter::TYPE, 99);
                put_uint(c, counter::UNIT, 99);
                put_str(c, counter::Y_AXIS_SHARE_KEY, "scale");
            });
        });
    });
    with_track(&trace, |track| {
        assert_eq!((track.child_ordering, track.merge, track.merge_key), (None, None, Some("row")));
        assert_eq!((track.rank, track.description, track.skipped), (None, None, 0));
        let counter = track.counter.as_ref().unwrap();
        assert_eq!((counter.builtin, counter.unit, counter.y_axis_share_key), (None, None, Some("scale")));
    });
}

#[test]
fn other_bytes_in_the_markers_field_are_returned() {
    let trace = packet(|p| put_bytes(p, trace_packet::SYNCHRONIZATION_MARKER, b"another"));
    with_packet(&trace, |packet| {
        assert!(
            matches!(packet.data, Some(PacketData::Other { field: 36, bytes: b"another", .. })),
            "{packet:?}"
        );
    });
}

#[test]
fn a_state_that_the_schema_does_not_have_is_returned_as_bytes() {
    let field = trace_packet::GENERIC_KERNEL_TASK_STATE_EVENT;
    let trace = packet(|p| put_message(p, field, |e| put_uint(e, fields::task_state::STATE, 9)));
    with_packet(&trace, |packet| {
        assert!(
            matches!(packet.data, Some(PacketData::Other { field: 117, bytes: [0x20, 9], .. })),
            "{packet:?}"
        );
    });
}

#[test]
fn statistics_of_many_buffers_are_added_up() {
    use fields::{buffer_stats as buffer, trace_stats as stats};
    let trace = packet(|p| {
        put_message(p, trace_packet::TRACE_STATS, |s| {
            for lost in [5, 6, u64::MAX] {
                put_message(s, stats::BUFFER_STATS, |b| {
                    put_uint(b, buffer::BUFFER_SIZE, 100);
                    put_uint(b, buffer::TRACE_WRITER_PACKET_LOSS, lost);
                    put_uint(b, buffer::BYTES_OVERWRITTEN, 1);
                });
            }
            put_uint(s, 4001, 1);
        });
    });
    let mut reader = PacketReader::new(&trace[..]);
    let (_, packet) = reader.next().unwrap().unwrap();
    let Some(PacketData::Stats(read)) = packet.data else { panic!("{packet:?}") };
    assert_eq!(read, te::TraceStats { size: 300, events_lost: u64::MAX, ..te::TraceStats::default() });
    assert_eq!(packet.skipped, 4);
}

#[test]
fn a_process_tree_can_have_many_processes_and_other_fields() {
    use fields::{process_tree as tree, process_tree_process as process};
    let trace = packet(|p| {
        put_message(p, trace_packet::PROCESS_TREE, |t| {
            put_message(t, tree::PROCESSES, |m| put_uint(m, process::PID, 7));
            put_str(t, 2, "a thread");
            put_message(t, tree::PROCESSES, |m| {
                put_str(m, process::CMDLINE, "app");
                put_uint(m, 4001, 1);
            });
        });
    });
    with_packet(&trace, |packet| {
        let Some(PacketData::Processes(processes)) = &packet.data else { panic!("{packet:?}") };
        let read: Vec<_> =
            all(processes.clone()).iter().map(|p| (p.pid, p.parent, all(p.command_line()))).collect();
        assert_eq!(read, [(Some(7), None, vec![]), (None, None, vec!["app"])]);
    });
}
