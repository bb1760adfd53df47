use super::*;
use crate::Attributes;

const THREAD: Stamp = Stamp { pid: 70, tid: 71, time: 5_000, id: 9, cpu: 1 };

fn record(kind: u32, misc: u16, fields: &[u8]) -> Vec<u8> {
    let mut out = kind.to_ne_bytes().to_vec();
    out.extend(misc.to_ne_bytes());
    out.extend([0; 2]);
    out.extend(fields);
    let size = u16::try_from(out.len()).unwrap_or(u16::MAX);
    out[6..8].copy_from_slice(&size.to_ne_bytes());
    out
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn stamp() -> Vec<u8> {
    [halves(&[70, 71]), words(&[5_000, 9]), halves(&[1, 0])].concat()
}

fn read(bytes: &[u8]) -> Option<(Record<'_>, Stamp)> {
    parse(bytes, Attributes::switches().layout())
}

#[test]
fn switches_have_a_direction() {
    for (misc, direction) in
        [(0, Direction::In), (0x2000, Direction::OutWaiting), (0x6000, Direction::OutPreempted)]
    {
        let bytes = record(14, misc, &stamp());
        assert_eq!(read(&bytes), Some((Record::Switch { direction }, THREAD)));
    }
}

#[test]
fn starts_ends_and_names_of_threads() {
    let (child, parent) = (Task { pid: 70, tid: 72 }, Task { pid: 60, tid: 61 });
    let tasks = [halves(&[70, 60, 72, 61]), words(&[4_999]), stamp()].concat();
    let fork = record(7, 0, &tasks);
    assert_eq!(read(&fork), Some((Record::Fork { child, parent, time: 4_999 }, THREAD)));
    let exit = record(4, 0, &tasks);
    assert_eq!(read(&exit), Some((Record::Exit { task: child, time: 4_999 }, THREAD)));
    let comm = record(3, 0x2000, &[halves(&[70, 72]), b"worker\0\0".to_vec(), stamp()].concat());
    assert_eq!(read(&comm), Some((Record::Comm { task: child, name: b"worker", is_exec: true }, THREAD)));
    let lost = record(2, 0, &[words(&[9, 33]), stamp()].concat());
    assert_eq!(read(&lost), Some((Record::Lost { records: 33 }, THREAD)));
    assert_eq!(read(&record(99, 0, &stamp())), Some((Record::Other { kind: 99 }, THREAD)));
}

#[test]
fn mappings_have_an_inode_or_a_build_id() {
    let mapping = |misc, file: &[u8]| {
        let head = [halves(&[70, 72]), words(&[0x1000, 0x2000, 0x3000])].concat();
        let path = [halves(&[5, 2]), b"/bin/x\0\0".to_vec(), stamp()].concat();
        record(10, misc, &[head, file.to_vec(), path].concat())
    };
    let bytes = mapping(2, &[halves(&[8, 1]), words(&[77, 3])].concat());
    let Some((Record::Mmap(read_back), _)) = read(&bytes) else { panic!() };
    assert_eq!((read_back.device, read_back.inode, read_back.build_id), ((8, 1), 77, &[][..]));
    assert_eq!((read_back.address, read_back.size, read_back.offset), (0x1000, 0x2000, 0x3000));
    assert_eq!((read_back.path, read_back.protection), (&b"/bin/x"[..], 5));
    let with_id = |length| mapping(0x4000, &[&[length, 0, 0, 0][..], &[7; 20]].concat());
    let bytes = with_id(20);
    let Some((Record::Mmap(read_back), _)) = read(&bytes) else { panic!() };
    assert_eq!((read_back.inode, read_back.build_id), (0, &[7; 20][..]));
    assert_eq!(read(&with_id(21)), None);
}

fn sample_bytes(stack_size: u64, filled: u64) -> Vec<u8> {
    let fields = [
        words(&[0xabc]),
        stamp(),
        words(&[2, 0xabc, 0xdef]),
        words(&[2, 31, 32, 33]),
        words(&[stack_size]),
        vec![1; 16],
        words(&[filled]),
    ];
    record(9, 2, &fields.concat())
}

fn stacks() -> Layout {
    Attributes::cpu_clock(997).call_chain(0).user_stack(0b111, 16).layout()
}

#[test]
fn samples_have_the_fields_of_their_layout() {
    let bytes = sample_bytes(16, 12);
    let Some((Record::Sample { is_user, address, call_chain, registers, stack, raw }, at)) =
        parse(&bytes, stacks())
    else {
        panic!()
    };
    assert_eq!((is_user, address, at, stack, raw), (true, 0xabc, THREAD, &[1; 12][..], &[][..]));
    assert_eq!(call_chain.iter().collect::<Vec<_>>(), [0xabc, 0xdef]);
    assert_eq!(registers.iter().collect::<Vec<_>>(), [31, 32, 33]);
    for (size, filled) in [(16, 17), (17, 12), (u64::MAX, 12), (16, u64::MAX)] {
        assert_eq!(parse(&sample_bytes(size, filled), stacks()), None, "{size} {filled}");
    }
}

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

#[test]
fn no_bytes_make_the_parser_panic() {
    let mut numbers = Numbers(1);
    let seeds = [
        record(14, 0, &stamp()),
        record(3, 0, &[halves(&[1, 2]), b"abcdefg\0".to_vec(), stamp()].concat()),
        record(7, 0, &[halves(&[1, 2, 3, 4]), words(&[5]), stamp()].concat()),
        record(10, 0x4000, &[vec![20; 80], stamp()].concat()),
        sample_bytes(16, 12),
    ];
    let layouts = [stacks(), Attributes::switches().layout(), Attributes::tracepoint(1).layout()];
    for round in 0..200_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=numbers.next() % 4 {
            let at = numbers.next() as usize % bytes.len();
            bytes[at] = numbers.next() as u8;
        }
        bytes.truncate(bytes.len() - numbers.next() as usize % 16 % bytes.len());
        for layout in layouts {
            if let Some((Record::Sample { call_chain, registers, .. }, _)) = parse(&bytes, layout) {
                assert_eq!(
                    call_chain.iter().count() + registers.iter().count(),
                    call_chain.len() + registers.len()
                );
            }
        }
    }
}
