//! Records that name objects of the traced program and of its system.

use super::cursor::Cursor;
use super::layout::{MAX_RECORD_WORDS, RecordType, kernel_object as kernel, userspace_object as userspace};
use super::record::Record;
use super::refs::{ProcessRef, StringRef};
use super::write::{Put, fitting, header, put_arguments};
use crate::{DecodeError, Value};

/// "Kernel object record": a process or thread and its name. A thread's argument "process" is its process
/// ([`Value::Koid`]).
///
/// ```text
///  63       44 43  40 39        24 23    16 15          4 3      0
/// +-----------+------+------------+--------+-------------+--------+
/// | 0         | args | name (ref) |  type  | size, words |   7    |
/// +-----------+------+------------+--------+-------------+--------+
/// | koid                                                          |
/// +---------------------------------------------------------------+
/// | the name, if it is inline                                     |
/// +---------------------------------------------------------------+
/// | arguments                                                     |
/// +---------------------------------------------------------------+
/// ```
pub fn kernel_object(
    out: &mut impl Put,
    object_type: u8,
    koid: u64,
    name: StringRef<'_>,
    args: &[(StringRef<'_>, Value<'_>)],
) {
    let fixed = 2 + name.words();
    let (args, words) = fitting(args, MAX_RECORD_WORDS - fixed);
    out.word(
        header(RecordType::KernelObject, fixed + words)
            | kernel::KIND.set(u64::from(object_type))
            | kernel::NAME.set(name.bits())
            | kernel::ARGS.set(args.len() as u64),
    );
    out.word(koid);
    out.stream(name.text().as_bytes());
    put_arguments(out, args);
}

/// "Userspace object record": what is at an address of a process. Arguments that are [`Value::Pointer`]s to it
/// are shown with its name.
///
/// ```text
///  63       44 43  40 39        24 23    16 15          4 3      0
/// +-----------+------+------------+--------+-------------+--------+
/// | 0         | args | name (ref) |process | size, words |   6    |
/// +-----------+------+------------+--------+-------------+--------+
/// | pointer                                                       |
/// +---------------------------------------------------------------+
/// | the process's koid, if it is inline: no thread's follows it   |
/// +---------------------------------------------------------------+
/// | the name, if it is inline                                     |
/// +---------------------------------------------------------------+
/// | arguments                                                     |
/// +---------------------------------------------------------------+
/// ```
pub fn userspace_object(
    out: &mut impl Put,
    pointer: u64,
    process: ProcessRef,
    name: StringRef<'_>,
    args: &[(StringRef<'_>, Value<'_>)],
) {
    let koid = process.inline();
    let fixed = 2 + usize::from(koid.is_some()) + name.words();
    let (args, words) = fitting(args, MAX_RECORD_WORDS - fixed);
    out.word(
        header(RecordType::UserspaceObject, fixed + words)
            | userspace::PROCESS.set(process.bits())
            | userspace::NAME.set(name.bits())
            | userspace::ARGS.set(args.len() as u64),
    );
    out.word(pointer);
    if let Some(koid) = koid {
        out.word(koid);
    }
    out.stream(name.text().as_bytes());
    put_arguments(out, args);
}

pub(super) fn parse_kernel<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Record<'a>, DecodeError> {
    Ok(Record::KernelObject {
        object_type: kernel::KIND.get(header) as u8,
        koid: cursor.word("a koid")?,
        name: cursor.string(kernel::NAME.get(header), "a name")?,
        args: cursor.arguments(kernel::ARGS.get(header))?,
    })
}

pub(super) fn parse_userspace<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Record<'a>, DecodeError> {
    Ok(Record::UserspaceObject {
        pointer: cursor.word("a pointer")?,
        process: cursor.process(userspace::PROCESS.get(header))?,
        name: cursor.string(userspace::NAME.get(header), "a name")?,
        args: cursor.arguments(userspace::ARGS.get(header))?,
    })
}
