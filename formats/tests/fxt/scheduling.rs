//! Scheduling records.

use super::*;

#[test]
fn scheduling_records_have_the_words_of_the_document() {
    let mut out = Vec::new();
    let args = &[(StringRef::Index(4), Value::I64(-1))][..];
    fxt::context_switch(&mut out, &switch(args));
    fxt::thread_wakeup(&mut out, &ThreadWakeup { timestamp: 6, cpu: 0xabcd, thread: 71, args: &[] });
    let legacy = legacy_switch();
    fxt::legacy_context_switch(&mut out, &legacy);
    let (outgoing, incoming) = (legacy.incoming, legacy.outgoing);
    fxt::legacy_context_switch(&mut out, &LegacyContextSwitch { outgoing, incoming, ..legacy });
    require_words(
        &out,
        &[
            0x1000_0030_0031_0058, // kind 1, state 3, cpu 3, one argument, 5 words
            5,
            71,
            72,
            0xffff_ffff_0004_0011,
            0x2000_000a_bcd0_0038, // kind 2, the cpu from bit 20, 3 words
            6,
            71,
            0x01f1_0090_0502_0048, // kind 0, priorities, threads 9 and 0, state 5, cpu 2, 4 words
            7,
            70,
            71,
            0x01f1_0000_9502_0048, // the threads swapped
            7,
            70,
            71,
        ],
    );
}

#[test]
fn a_switch_that_is_too_long_loses_arguments_from_its_end() {
    let text = "x".repeat(MAX_STRING);
    let args = &[(StringRef::Index(1), Value::Str(&text)), (StringRef::Index(2), Value::Str(&text))][..];
    let mut out = Vec::new();
    fxt::context_switch(&mut out, &switch(args));
    fxt::thread_wakeup(&mut out, &ThreadWakeup { timestamp: 6, cpu: 0, thread: 2, args });
    let mut reader = RecordReader::new(&out[..]);
    match reader.next().unwrap() {
        Some((_, Record::ContextSwitch(read))) => require_arguments(read.args, &args[..1]),
        other => panic!("{other:?}"),
    }
    match reader.next().unwrap() {
        Some((_, Record::ThreadWakeup(read))) => require_arguments(read.args, &args[..1]),
        other => panic!("{other:?}"),
    }
}

fn state() -> impl Strategy<Value = ThreadState> {
    (0..=5_u64).prop_map(|number| ThreadState::from_number(number).unwrap())
}

proptest! {
    #[test]
    fn switches_and_wakeups_are_read_back(
        timestamp in unsigned(), cpu: u16, outgoing in unsigned(), outgoing_state in state(), incoming in unsigned(),
        owned in owned_arguments(),
    ) {
        let args = &borrowed(&owned)[..];
        let switch = ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args };
        let wakeup = ThreadWakeup { timestamp, cpu, thread: incoming, args };
        let mut out = Vec::new();
        fxt::context_switch(&mut out, &switch);
        fxt::thread_wakeup(&mut out, &wakeup);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((_, Record::ContextSwitch(read))) => {
                let ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args: read_args } = read;
                assert_eq!(ContextSwitch { timestamp, cpu, outgoing, outgoing_state, incoming, args }, switch);
                require_arguments(read_args, args);
            }
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::ThreadWakeup(read))) => {
                let ThreadWakeup { timestamp, cpu, thread, args: read_args } = read;
                assert_eq!(ThreadWakeup { timestamp, cpu, thread, args }, wakeup);
                require_arguments(read_args, args);
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn a_legacy_switch_is_read_back(
        timestamp in unsigned(), cpu: u8, outgoing in thread(), outgoing_state in state(), outgoing_priority: u8,
        incoming in thread(), incoming_priority: u8,
    ) {
        let switch = LegacyContextSwitch {
            timestamp, cpu, outgoing, outgoing_state, outgoing_priority, incoming, incoming_priority,
        };
        let mut out = Vec::new();
        fxt::legacy_context_switch(&mut out, &switch);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::LegacyContextSwitch(read))) => assert_eq!(read, switch),
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }
}
