//! Packets about the trace as a whole are read back.

use super::*;
use te::{Compression, Process, SessionEnd, SystemInfo, TaskState, TaskStateEvent, TraceStats};

proptest! {
    #[test]
    fn a_start_is_read_back(
        (sequence, timestamp_ns) in ((1..=u32::MAX).prop_map(SequenceId), unsigned()),
        (first, dropped) in any::<(bool, bool)>(),
        track_uuid in track_uuid(),
        extra_counters in prop::collection::vec(track_uuid(), 0..4),
    ) {
        let start = SequenceStart {
            sequence, first, dropped, track_uuid, extra_counters: &extra_counters, timestamp_ns,
        };
        let mut out = Vec::new();
        te::sequence_start(&mut out, &start);
        with_packet(&out, |packet| {
            let Some(PacketData::Clocks(clocks)) = &packet.data else { panic!("{packet:?}") };
            let clocks = all(clocks.clone());
            assert!(clocks.iter().all(|c| c.timestamp == timestamp_ns) && clocks.len() == 2);
            let defaults = packet.defaults.as_ref().unwrap();
            let read = SequenceStart {
                sequence: packet.sequence,
                first: packet.first,
                dropped: packet.dropped,
                track_uuid: defaults.track_uuid.unwrap(),
                extra_counters: &all(defaults.extra_counter_track_uuids()),
                timestamp_ns: clocks[0].timestamp,
            };
            assert_eq!(read, start);
        });
    }

    #[test]
    fn clocks_are_read_back(clocks in prop::collection::vec((any::<u32>(), unsigned()), 0..8)) {
        let mut out = Vec::new();
        te::clock_snapshot(&mut out, SequenceId(5), &clocks);
        with_packet(&out, |packet| {
            let Some(PacketData::Clocks(read)) = &packet.data else { panic!("{packet:?}") };
            let read: Vec<_> = all(read.clone()).iter().map(|c| (c.clock_id, c.timestamp)).collect();
            assert_eq!((packet.sequence, read), (SequenceId(5), clocks.clone()));
        });
    }

    #[test]
    fn a_uuid_is_read_back(uuid: u128) {
        let mut out = Vec::new();
        te::trace_uuid(&mut out, SequenceId(5), uuid);
        with_packet(&out, |packet| {
            assert!(matches!(packet.data, Some(PacketData::TraceUuid(read)) if read == uuid), "{packet:?}");
        });
    }

    #[test]
    fn the_end_of_a_session_is_found_at_the_end_of_its_trace(
        (pid, timestamp_ns) in (0..=i32::MAX, unsigned()),
        before in prop::collection::vec(any::<u8>(), 0..40),
        padding in 0_usize..10,
        sequence in 1_u8..0x80,
    ) {
        let (mut out, end) = (before.clone(), SessionEnd { pid, timestamp_ns });
        te::session_end(&mut out, sequence, end);
        prop_assert_eq!(out.len(), before.len() + SessionEnd::LEN);
        with_packet(&out[before.len()..], |packet| {
            assert!(matches!(packet.data, Some(PacketData::SessionEnd)) && packet.skipped == 0, "{packet:?}");
            assert_eq!(packet.sequence, SequenceId(u32::from(sequence)));
            assert_eq!(packet.timestamp, Some(timestamp_ns));
        });
        let whole = out.clone();
        out.resize(out.len() + padding, 0);
        assert_eq!(SessionEnd::at_end_of(&out), (padding < 8).then_some(end));
        for cut in 1..SessionEnd::LEN {
            assert_eq!(SessionEnd::at_end_of(&whole[..whole.len() - cut]), None);
        }
    }

    #[test]
    fn a_machine_is_read_back(
        (sysname, release, version, machine, tracer) in (text(), text(), text(), text(), text()),
        (page_size, num_cpus, timezone_off_mins) in any::<(u32, u32, i32)>(),
        ram_bytes in unsigned(),
    ) {
        let info = SystemInfo {
            sysname: &sysname,
            release: &release,
            version: &version,
            machine: &machine,
            tracer: &tracer,
            page_size,
            num_cpus,
            timezone_off_mins,
            ram_bytes,
        };
        let mut out = Vec::new();
        te::system_info(&mut out, SequenceId(5), &info);
        with_packet(&out, |packet| {
            assert!(matches!(packet.data, Some(PacketData::System(read)) if read == info), "{packet:?}");
        });
    }

    #[test]
    fn a_process_is_read_back(
        timestamp in unsigned(),
        (pid, parent) in any::<(i32, Option<i32>)>(),
        arguments in prop::collection::vec(text(), 0..4),
    ) {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut out = Vec::new();
        te::process_tree(&mut out, SequenceId(5), timestamp, &Process { pid, parent, command_line: &arguments });
        with_packet(&out, |packet| {
            let Some(PacketData::Processes(processes)) = &packet.data else { panic!("{packet:?}") };
            let read: Vec<_> =
                all(processes.clone()).iter().map(|p| (p.pid, p.parent, all(p.command_line()))).collect();
            assert_eq!((packet.timestamp, read), (Some(timestamp), vec![(Some(pid), parent, arguments.clone())]));
        });
    }

    #[test]
    fn threads_are_read_back(names in prop::collection::vec((any::<(i32, i32)>(), text()), 0..4)) {
        let threads: Vec<_> =
            names.iter().map(|((tid, pid), name)| te::Thread { tid: *tid, pid: *pid, name }).collect();
        let mut out = Vec::new();
        te::process_threads(&mut out, SequenceId(5), 7, &threads);
        with_packet(&out, |packet| {
            let Some(PacketData::Processes(tree)) = &packet.data else { panic!("{packet:?}") };
            assert_eq!((all(tree.threads()), tree.clone().count()), (threads.clone(), 0));
        });
    }

    #[test]
    fn statistics_are_read_back(numbers in prop::collection::vec(unsigned(), 7)) {
        let stats = TraceStats {
            size: numbers[0],
            bytes_written: numbers[1],
            chunks_written: numbers[2],
            chunks_discarded: numbers[3],
            events_lost: numbers[4],
            flushes_requested: numbers[5],
            flushes_succeeded: numbers[6],
        };
        let mut out = Vec::new();
        te::trace_stats(&mut out, SequenceId(5), &stats);
        with_packet(&out, |packet| {
            assert!(matches!(packet.data, Some(PacketData::Stats(read)) if read == stats), "{packet:?}");
        });
    }

    #[test]
    fn a_state_of_a_thread_is_read_back(
        (cpu, prio, tid) in any::<(Option<i32>, Option<i32>, i64)>(),
        (state, timestamp, comm) in (0u64..=8, unsigned(), text()),
    ) {
        let state = TaskState::from_number(state).unwrap();
        let event = TaskStateEvent { cpu, comm: &comm, tid, state, prio };
        let mut out = Vec::new();
        te::task_state(&mut out, SequenceId(5), timestamp, &event);
        with_packet(&out, |packet| {
            assert_eq!(packet.timestamp, Some(timestamp));
            assert!(matches!(packet.data, Some(PacketData::TaskState(read)) if read == event), "{packet:?}");
        });
    }

    #[test]
    fn compressed_packets_are_returned_unchanged(deflated in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut out = Vec::new();
        te::compressed_packets(&mut out, &deflated);
        with_packet(&out, |packet| match packet.data {
            Some(PacketData::Compressed { by: Compression::Zlib, bytes, offset }) => {
                assert_eq!((bytes, &out[offset as usize..]), (&deflated[..], &deflated[..]));
            }
            _ => panic!("{packet:?}"),
        });
    }
}

#[test]
fn a_marker_is_read_back() {
    let mut out = Vec::new();
    te::synchronization_marker(&mut out, SequenceId(5));
    with_packet(&out, |packet| {
        assert!(
            matches!(packet.data, Some(PacketData::SynchronizationMarker))
                && packet.sequence == SequenceId(5)
        );
    });
}
