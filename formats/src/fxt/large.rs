//! Large records: their size has 32 bits. To write and to read.

use super::argument::ArgumentSlice;
use super::cursor::{Arguments, Cursor};
use super::kinds::{LargeBlobFormat, LargeKind};
use super::layout::{RecordType, large, large_blob as fields, record, words};
use super::record::Record;
use super::refs::{StringRef, ThreadRef};
use super::write::{Put, fitting, put_arguments, put_thread};
use crate::DecodeError;

/// "Large BLOB record". `A` is the type of the arguments: a slice ([`ArgumentSlice`]) to be written, an iterator
/// ([`Arguments`]) when read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlob<'a, A> {
    /// Its category.
    pub category: StringRef<'a>,
    /// Its name, which by the document says what kind of data it is.
    pub name: StringRef<'a>,
    /// With it the record is an "In Band Large Blob Record With Metadata", else one with "No Metadata".
    pub metadata: Option<LargeBlobMetadata<A>>,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// What a large blob may say of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlobMetadata<A> {
    /// When, in ticks.
    pub timestamp: u64,
    /// Where.
    pub thread: ThreadRef,
    /// Names and values.
    pub args: A,
}

/// The arguments that are written, and the words of all but the blob.
fn parts<'s, 'a>(
    blob: &LargeBlob<'a, ArgumentSlice<'s>>,
) -> (Option<LargeBlobMetadata<ArgumentSlice<'s>>>, u64) {
    let mut fixed = 3 + blob.category.words() + blob.name.words();
    let metadata = blob.metadata.map(|metadata| {
        let (args, words) = fitting(metadata.args, usize::MAX);
        fixed += 1 + metadata.thread.words() + words;
        LargeBlobMetadata { args, ..metadata }
    });
    (metadata, fixed as u64)
}

/// How many of `len` bytes have room in a record with `fixed` other words.
const fn kept(len: u64, fixed: u64) -> u64 {
    let room = (large::SIZE.max() - fixed) * 8;
    if len < room { len } else { room }
}

/// Words that [`large_blob`] will write.
///
/// Above [`MAX_RECORD_WORDS`](super::MAX_RECORD_WORDS) Perfetto's importer refuses the whole trace.
#[must_use]
pub fn large_blob_words(blob: &LargeBlob<'_, ArgumentSlice<'_>>) -> u64 {
    let (_, fixed) = parts(blob);
    fixed + kept(blob.bytes.len() as u64, fixed).div_ceil(8)
}

/// "Large BLOB record": bulk data in one piece, up to 32 GiB, beyond which it is cut. An argument longer
/// than its header can tell (4095 words) is left out with those after it.
///
/// **Perfetto's importer reads only 12 bits of the size: one record of 4096 words or more, and it fails on the whole
/// file.** For such a reader see [`large_blob_words`], or split the data with [`blob`](super::blob).
///
/// "In Band Large Blob Record With Metadata" (format 0) and "In Band Large Blob Record No Metadata" (format 1):
///
/// ```text
///  63         44 43    40 39    36 35                      4 3      0
/// +-------------+--------+--------+-------------------------+--------+
/// | 0           | format |   0    | size, words             |   15   |
/// +-------------+--------+--------+-------------------------+--------+
///  63         44 43    36 35    32 31        16 15                  0
/// +-------------+--------+--------+------------+---------------------+
/// | 0           | thread |  args  | name (ref) | category (ref)      |  format 1: no thread
/// |             | (ref)  |        |            |                     |  and args
/// +-------------+--------+--------+------------+---------------------+
/// | the category, if it is inline                                    |
/// +------------------------------------------------------------------+
/// | the name, if it is inline                                        |
/// +------------------------------------------------------------------+
/// | timestamp                                                        |  format 0 only
/// +------------------------------------------------------------------+
/// | process's and thread's koids, if they are inline                 |  format 0 only
/// +------------------------------------------------------------------+
/// | arguments                                                        |  format 0 only
/// +------------------------------------------------------------------+
/// | bytes of the blob, without padding                               |
/// +------------------------------------------------------------------+
/// | the blob                                                         |
/// +------------------------------------------------------------------+
/// ```
pub fn large_blob(out: &mut impl Put, blob: &LargeBlob<'_, ArgumentSlice<'_>>) {
    let (metadata, fixed) = parts(blob);
    let bytes = &blob.bytes[..kept(blob.bytes.len() as u64, fixed) as usize];
    let format = if metadata.is_some() { LargeBlobFormat::WithMetadata } else { LargeBlobFormat::NoMetadata };
    out.word(
        record::TYPE.set(RecordType::Large as u64)
            | large::SIZE.set(fixed + words(bytes.len()) as u64)
            | large::KIND.set(LargeKind::Blob as u64)
            | fields::FORMAT.set(format as u64),
    );
    let about = metadata.map_or(0, |metadata| {
        fields::ARGS.set(metadata.args.len() as u64) | fields::THREAD.set(metadata.thread.bits())
    });
    out.word(fields::CATEGORY.set(blob.category.bits()) | fields::NAME.set(blob.name.bits()) | about);
    out.stream(blob.category.text().as_bytes());
    out.stream(blob.name.text().as_bytes());
    if let Some(metadata) = metadata {
        out.word(metadata.timestamp);
        put_thread(out, metadata.thread);
        put_arguments(out, metadata.args);
    }
    out.word(bytes.len() as u64);
    out.stream(bytes);
}

/// None for a kind of large record or a format that the document does not have.
pub(super) fn parse<'a>(header: u64, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, DecodeError> {
    let Some(LargeKind::Blob) = LargeKind::from_number(large::KIND.get(header)) else {
        return Ok(None);
    };
    let Some(format) = LargeBlobFormat::from_number(fields::FORMAT.get(header)) else {
        return Ok(None);
    };
    // In the order of the words.
    let about = cursor.word("a large blob's header")?;
    let category = cursor.string(fields::CATEGORY.get(about), "a category")?;
    let name = cursor.string(fields::NAME.get(about), "a name")?;
    let metadata = match format {
        LargeBlobFormat::WithMetadata => Some(LargeBlobMetadata::<Arguments<'a>> {
            timestamp: cursor.word("a timestamp")?,
            thread: cursor.thread(fields::THREAD.get(about))?,
            args: cursor.arguments(fields::ARGS.get(about))?,
        }),
        LargeBlobFormat::NoMetadata => None,
    };
    let len = cursor.word("a large blob's size")?;
    let bytes = cursor.stream(len, "a large blob")?;
    Ok(Some(Record::LargeBlob(LargeBlob { category, name, metadata, bytes })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_keeps_what_32_bits_of_words_can_tell() {
        let room = ((1 << 32) - 1 - 3) * 8;
        for (len, expected) in
            [(0, 0), (room - 1, room - 1), (room, room), (room + 1, room), (u64::MAX, room)]
        {
            assert_eq!(kept(len, 3), expected);
        }
    }
}
