//! Tracks are read back.

use super::*;
use te::{ChildOrdering, CounterType, CustomTrack, SiblingMerge};

fn unit() -> impl Strategy<Value = Unit> {
    (0..=3_u64).prop_map(|n| Unit::from_number(n).unwrap())
}

proptest! {
    #[test]
    fn tracks_are_read_back(
        ids in (track_uuid(), track_uuid()), pid: i32, tid: i64, name in text(), cmdline in prop::collection::vec(text(), 0..4),
    ) {
        let cmdline: Vec<_> = cmdline.iter().map(String::as_str).collect();
        let mut out = Vec::new();
        let process = ProcessTrack { uuid: ids.0, pid, name: &name, cmdline: &cmdline };
        te::process_descriptor(&mut out, SequenceId(1), &process);
        let thread = ThreadTrack { uuid: ids.1, parent_uuid: ids.0, pid, tid, name: &name };
        te::thread_descriptor(&mut out, SequenceId(1), &thread);
        let mut reader = PacketReader::new(&out[..]);
        match reader.next().unwrap().unwrap().1.data {
            Some(PacketData::Track(track)) => {
                let process = track.process.unwrap();
                assert_eq!((track.uuid, process.pid, process.name), (Some(ids.0), Some(pid), Some(name.as_str())));
                assert_eq!(all(process.cmdline()), cmdline);
            }
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap().unwrap().1.data {
            Some(PacketData::Track(track)) => {
                let thread = track.thread.unwrap();
                assert_eq!((track.uuid, track.parent_uuid, track.skipped), (Some(ids.1), Some(ids.0), 0));
                assert_eq!((thread.pid, thread.tid, thread.name), (Some(pid), Some(tid), Some(name.as_str())));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counters_are_read_back(
        (uuid, parent_uuid, name) in (track_uuid(), track_uuid(), text()),
        (unit, unit_name) in (unit(), prop::option::of(text())),
        multiplier in prop_oneof![Just(1), any::<i64>()],
        is_incremental: bool,
        builtin in (0..=2_u64).prop_map(|n| CounterType::from_number(n).unwrap()),
        (categories, key) in (prop::collection::vec(text(), 0..4), text()),
    ) {
        let categories: Vec<&str> = categories.iter().map(String::as_str).collect();
        let written = CounterTrack {
            unit, unit_name: unit_name.as_deref(), multiplier, is_incremental, builtin, categories: &categories,
            y_axis_share_key: &key, ..CounterTrack::new(uuid, parent_uuid, &name)
        };
        let mut out = Vec::new();
        te::counter_descriptor(&mut out, SequenceId(1), &written);
        with_track(&out, |track| {
            let counter = track.counter.as_ref().unwrap();
            let categories: Vec<&str> = counter.categories().map(Result::unwrap).collect();
            let read = CounterTrack {
                uuid: track.uuid.unwrap(),
                parent_uuid: track.parent_uuid.unwrap(),
                name: track.name.unwrap_or_default(),
                unit: counter.unit.unwrap(),
                unit_name: counter.unit_name,
                multiplier: counter.unit_multiplier.unwrap_or(1),
                is_incremental: counter.is_incremental,
                builtin: counter.builtin.unwrap(),
                categories: &categories,
                y_axis_share_key: counter.y_axis_share_key.unwrap_or_default(),
            };
            assert_eq!((read, track.skipped), (written, 0));
        });
    }

    #[test]
    fn custom_tracks_are_read_back(
        (uuid, parent_uuid) in (track_uuid(), prop::option::of(track_uuid())),
        (name, description) in (text(), text()),
        (ordering, merge) in (0..=3_u64, 0..=3_u64),
        rank in prop_oneof![Just(0), any::<i32>()],
        key in text(),
    ) {
        let written = CustomTrack {
            uuid,
            parent_uuid,
            name: &name,
            description: &description,
            child_ordering: ChildOrdering::from_number(ordering).unwrap(),
            rank,
            merge: SiblingMerge::from_number(merge).unwrap(),
            merge_key: &key,
            has_states: rank > 0,
        };
        let mut out = Vec::new();
        te::custom_descriptor(&mut out, SequenceId(1), &written);
        with_track(&out, |track| {
            let read = CustomTrack {
                uuid: track.uuid.unwrap(),
                parent_uuid: track.parent_uuid,
                name: track.name.unwrap_or_default(),
                description: track.description.unwrap_or_default(),
                child_ordering: track.child_ordering.unwrap(),
                rank: track.rank.unwrap_or_default(),
                merge: track.merge.unwrap(),
                merge_key: track.merge_key.unwrap_or_default(),
                has_states: track.has_states,
            };
            assert_eq!((read, track.skipped), (written, 0));
            assert!(track.process.is_none() && track.thread.is_none() && track.counter.is_none());
        });
    }
}
