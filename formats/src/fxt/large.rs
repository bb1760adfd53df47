//! Large records, whose size has 32 bits, written and read.

use crate::DecodeError;
use crate::fxt::argument::{ArgumentSlice, Arguments, fitting, put_arguments};
use crate::fxt::cursor::Cursor;
use crate::fxt::layout::{
    LargeBlobFormat, LargeKind, RecordType, large, large_blob as fields, record, words,
};
use crate::fxt::put::PutWords;
use crate::fxt::refs::{StringRef, ThreadRef};

/// "Large BLOB record". `A` is the type of the arguments: a slice ([`ArgumentSlice`]) to write, an iterator
/// ([`Arguments`]) when read.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, LargeBlob, Record, RecordReader, StringRef};
///
/// let blob = LargeBlob {
///     category: StringRef::Inline("gpu"),
///     name: StringRef::Inline("frame"),
///     metadata: None,
///     bytes: &[7; 40],
/// };
/// let mut trace = Vec::new();
/// fxt::large_blob(&mut trace, &blob);
/// assert_eq!(trace.len() as u64, fxt::large_blob_words(&blob) * 8);
///
/// let mut reader = RecordReader::new(&trace[..]);
/// let Some((0, Record::LargeBlob(read))) = reader.next()? else { panic!() };
/// assert_eq!((read.name, read.bytes), (blob.name, blob.bytes));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargeBlob<'a, A> {
    /// The category.
    pub category: StringRef<'a>,
    /// The name. By the document it says of which kind the data is.
    pub name: StringRef<'a>,
    /// The metadata. `Some` makes an "In Band Large Blob Record With Metadata", `None` one with "No
    /// Metadata".
    pub metadata: Option<LargeBlobMetadata<A>>,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// The time, the thread and the arguments of a large blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeBlobMetadata<A> {
    /// The time, in ticks.
    pub timestamp: u64,
    /// The thread.
    pub thread: ThreadRef,
    /// The arguments: names and values.
    pub args: A,
}

/// Returns the metadata with the arguments that are written, and the record's size in words without the blob.
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

/// Returns how many of `len` bytes fit into a record with `fixed` other words.
const fn kept(len: u64, fixed: u64) -> u64 {
    let room = (large::SIZE.max() - fixed) * 8;
    if len < room { len } else { room }
}

/// Returns the number of words that [`large_blob`] writes.
///
/// Above [`MAX_RECORD_WORDS`](crate::fxt::MAX_RECORD_WORDS), Perfetto's importer refuses the whole trace.
#[must_use]
pub fn large_blob_words(blob: &LargeBlob<'_, ArgumentSlice<'_>>) -> u64 {
    let (_, fixed) = parts(blob);
    fixed + kept(blob.bytes.len() as u64, fixed).div_ceil(8)
}

/// Writes a "Large BLOB record": bulk data in one piece, cut at 32 GiB.
///
/// An argument of more than 4095 words, the most that its header can hold, is dropped with the arguments
/// after it.
///
/// **Perfetto's importer reads only 12 bits of the size. One record of 4096 words or more makes it refuse the
/// whole file.** For that importer, check [`large_blob_words`], or write the data with
/// [`blob`](crate::fxt::blob()).
///
/// "In Band Large Blob Record With Metadata" (format 0) and "In Band Large Blob Record No Metadata" (format
/// 1):
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
pub fn large_blob(out: &mut impl PutWords, blob: &LargeBlob<'_, ArgumentSlice<'_>>) {
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
        metadata.thread.put(out);
        put_arguments(out, metadata.args);
    }
    out.word(bytes.len() as u64);
    out.stream(bytes);
}

/// Returns `None` for a kind of large record or a format that the document does not define.
pub(super) fn parse<'a>(
    header: u64,
    cursor: &mut Cursor<'a>,
) -> Result<Option<LargeBlob<'a, Arguments<'a>>>, DecodeError> {
    let Some(LargeKind::Blob) = LargeKind::from_number(large::KIND.get(header)) else {
        return Ok(None);
    };
    let Some(format) = LargeBlobFormat::from_number(fields::FORMAT.get(header)) else {
        return Ok(None);
    };
    // Each field that is read moves the cursor, so the fields follow the order of the words.
    let about = cursor.word("a large blob's header")?;
    let category = cursor.string(fields::CATEGORY.get(about), "a category")?;
    let name = cursor.string(fields::NAME.get(about), "a name")?;
    let metadata = match format {
        LargeBlobFormat::WithMetadata => Some(LargeBlobMetadata {
            timestamp: cursor.word("a timestamp")?,
            thread: cursor.thread(fields::THREAD.get(about))?,
            args: Arguments::take(cursor, fields::ARGS.get(about))?,
        }),
        LargeBlobFormat::NoMetadata => None,
    };
    let len = cursor.word("a large blob's size")?;
    let bytes = cursor.stream(len, "a large blob")?;
    Ok(Some(LargeBlob { category, name, metadata, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_cut_to_a_size_of_32_bits() {
        let room = ((1 << 32) - 1 - 3) * 8;
        for (len, expected) in
            [(0, 0), (room - 1, room - 1), (room, room), (room + 1, room), (u64::MAX, room)]
        {
            assert_eq!(kept(len, 3), expected);
        }
    }
}
