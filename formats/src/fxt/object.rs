//! Writes the records that name objects: processes, threads, and objects at an address.

use crate::Value;
use crate::fxt::argument::{fitting, put_arguments};
use crate::fxt::header::header;
use crate::fxt::layout::{
    MAX_RECORD_WORDS, RecordType, kernel_object as kernel, userspace_object as userspace,
};
use crate::fxt::put::PutWords;
use crate::fxt::refs::{ProcessRef, StringRef};

/// Writes a "Kernel object record": the name of a process or a thread.
///
/// `object_type` is [`KERNEL_OBJECT_PROCESS`](crate::fxt::KERNEL_OBJECT_PROCESS) or
/// [`KERNEL_OBJECT_THREAD`](crate::fxt::KERNEL_OBJECT_THREAD). A thread's argument "process", a
/// [`Value::Koid`], refers to its process.
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
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::fxt::{self, KERNEL_OBJECT_PROCESS, KERNEL_OBJECT_THREAD, StringRef};
///
/// let mut trace = Vec::new();
/// fxt::kernel_object(&mut trace, KERNEL_OBJECT_PROCESS, 70, StringRef::Inline("server"), &[]);
/// assert_eq!(trace.len(), 24); // header, koid and name
/// let process = [(StringRef::Inline("process"), Value::Koid(70))];
/// fxt::kernel_object(&mut trace, KERNEL_OBJECT_THREAD, 71, StringRef::Inline("main"), &process);
/// assert_eq!(trace.len(), 24 + 48); // header, koid, name, and three words of argument
/// ```
pub fn kernel_object(
    out: &mut impl PutWords,
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

/// Writes a "Userspace object record": the name of the object at an address of a process.
///
/// Viewers show this name for arguments that are a [`Value::Pointer`] to the address.
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
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, ProcessRef, Record, RecordReader, StringRef};
///
/// let mut trace = Vec::new();
/// let name = StringRef::Inline("the cache");
/// fxt::userspace_object(&mut trace, 0x7f00_1000, ProcessRef::Inline(70), name, &[]);
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((_, Record::UserspaceObject { pointer, name: read, .. })) = reader.next()? else { panic!() };
/// assert_eq!((pointer, read), (0x7f00_1000, name));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn userspace_object(
    out: &mut impl PutWords,
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
