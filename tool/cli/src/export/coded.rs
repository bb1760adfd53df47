//! A column whose values repeat as a chunk of a Parquet file: a page with the dictionary, and a page with the
//! codes.
//!
//! The texts of a batch have codes already. Parquet's own column writer takes the texts, and finds the code
//! of each one by its hash: that would be a third of the time of an export. Integers that are the same in
//! many rows in turn, as those of a thread, take a code for each such run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use hairline_tables::Dictionary;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// A run of equal values of this length takes fewer bytes as a count and the value.
const RUN: usize = 16;
/// Longer texts are no bounds of a chunk.
const LONGEST_BOUND: usize = 64;

/// A column of codes.
pub(super) struct Coded<'c> {
    /// The codes of the rows that have a value.
    pub(super) codes: Cow<'c, [u32]>,
    pub(super) values: Coding<'c>,
    /// Whether each row has a value. Empty if all have one.
    pub(super) is_valid: &'c [bool],
}

/// The value of each code.
pub(super) enum Coding<'c> {
    Texts(&'c Dictionary),
    Ints(Vec<i64>),
}

impl Coding<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Ints(values) => values.len(),
        }
    }

    /// The page of the dictionary: each text after its length, or each integer.
    fn page(&self) -> Result<Vec<u8>, ParquetError> {
        match self {
            Self::Ints(values) => Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            Self::Texts(texts) => {
                let mut page = Vec::with_capacity(texts.bytes.len() + 4 * texts.len());
                for text in all(texts) {
                    page.extend_from_slice(&count(text.len())?.to_le_bytes());
                    page.extend_from_slice(text);
                }
                Ok(page)
            }
        }
    }

    fn statistics(&self, nulls: u64) -> Statistics {
        match self {
            Self::Ints(values) => {
                let (least, most) = (values.iter().min(), values.iter().max());
                Statistics::int64(least.copied(), most.copied(), None, Some(nulls), false)
            }
            Self::Texts(texts) => {
                let bound = |text: Option<&[u8]>| {
                    text.filter(|text| text.len() <= LONGEST_BOUND).map(ByteArray::from)
                };
                let (least, most) = (bound(all(texts).min()), bound(all(texts).max()));
                Statistics::byte_array(least, most, None, Some(nulls), false)
            }
        }
    }
}

fn all(texts: &Dictionary) -> impl Iterator<Item = &[u8]> {
    (0..texts.len() as u32).map(|code| texts.get(code).as_bytes())
}

impl<'c> Coded<'c> {
    /// The integers of the rows that have one. `None` if too few are equal to the one before.
    pub(super) fn of_ints(values: &[i64], is_valid: &'c [bool]) -> Option<Self> {
        let changes = values.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if changes > values.len() / RUN {
            return None;
        }
        let (mut codes, mut all) = (Vec::with_capacity(values.len()), Vec::new());
        let mut by_value: HashMap<i64, u32> = HashMap::new();
        for run in values.chunk_by(|a, b| a == b) {
            let code = *by_value.entry(run[0]).or_insert_with(|| {
                all.push(run[0]);
                all.len() as u32 - 1 // a batch has few rows
            });
            codes.resize(codes.len() + run.len(), code);
        }
        Some(Self { codes: codes.into(), values: Coding::Ints(all), is_valid })
    }

    /// The number of rows.
    fn rows(&self) -> usize {
        self.codes.len().max(self.is_valid.len())
    }

    /// The bytes of the chunk, and what the file says of it.
    pub(super) fn chunk(
        &self,
        column: &ColumnDescPtr,
        compressor: &mut Compressor<'_>,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let mut output = TrackedWrite::new(Vec::new());
        let (mut pages, mut sizes) = (SerializedPageWriter::new(&mut output), Vec::new());
        if !self.codes.is_empty() {
            let (num_values, encoding) = (count(self.values.len())?, Encoding::PLAIN);
            let (buf, size) = compressed(&self.values.page()?, compressor)?;
            let page = Page::DictionaryPage { buf: buf.into(), num_values, encoding, is_sorted: false };
            sizes.push(pages.write_page(CompressedPage::new(page, size))?);
        }
        let (buf, size) = compressed(&self.data(column.max_def_level() > 0)?, compressor)?;
        let page = Page::DataPage {
            buf: buf.into(),
            num_values: count(self.rows())?,
            encoding: if self.codes.is_empty() { Encoding::PLAIN } else { Encoding::RLE_DICTIONARY },
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        sizes.push(pages.write_page(CompressedPage::new(page, size))?);
        pages.close()?;
        let close = self.about(column, &sizes)?;
        Ok((output.into_inner()?.into(), close))
    }

    /// What the file says of the chunk with these pages.
    fn about(
        &self,
        column: &ColumnDescPtr,
        pages: &[PageWriteSpec],
    ) -> Result<ColumnCloseResult, ParquetError> {
        let sum = |of: fn(&PageWriteSpec) -> usize| pages.iter().map(of).sum::<usize>() as i64;
        let data = pages.last().map_or(0, |page| page.offset);
        let has_dictionary = pages.len() > 1;
        let nulls = (self.rows() - self.codes.len()) as u64;
        let metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(self.rows() as i64)
            .set_total_compressed_size(sum(|page| page.compressed_size))
            .set_total_uncompressed_size(sum(|page| page.uncompressed_size))
            .set_data_page_offset(data.cast_signed())
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_statistics(self.values.statistics(nulls))
            .build()?;
        Ok(ColumnCloseResult {
            bytes_written: pages.iter().map(|page| page.bytes_written).sum(),
            rows_written: self.rows() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }

    /// The page of the codes, after a bit for each row that says whether it has one.
    fn data(&self, is_optional: bool) -> Result<Vec<u8>, ParquetError> {
        let mut page = Vec::new();
        if is_optional {
            page.extend_from_slice(&[0; 4]);
            if self.is_valid.is_empty() {
                put_run(self.rows(), 1, 1, &mut page);
            } else {
                let bits: Vec<u32> = self.is_valid.iter().map(|is_valid| u32::from(*is_valid)).collect();
                put_hybrid(&bits, 1, &mut page);
            }
            let length = count(page.len() - 4)?;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        if !self.codes.is_empty() {
            let most = (self.values.len() as u32).saturating_sub(1);
            let width = (32 - most.leading_zeros()).max(1);
            page.push(width as u8); // at most 32
            put_hybrid(&self.codes, width, &mut page);
        }
        Ok(page)
    }
}

fn count(count: usize) -> Result<u32, ParquetError> {
    u32::try_from(count).map_err(ParquetError::from)
}

fn compressed(page: &[u8], compressor: &mut Compressor<'_>) -> io::Result<(Vec<u8>, usize)> {
    Ok((compressor.compress(page)?, page.len()))
}

/// Writes values of `width` bits, in the format that Parquet calls a hybrid of run lengths and bit packing.
fn put_hybrid(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while let Some(value) = values.get(at) {
        let run = values[at..].iter().take_while(|other| *other == value).count();
        // Values are packed by eight: the first ones of the run fill the last eight.
        let fill = (packed..at).len().next_multiple_of(8) - (at - packed);
        if run >= fill + RUN {
            put_packed(&values[packed..at + fill], width, out);
            put_run(run - fill, *value, width, out);
            packed = at + run;
        }
        at += run;
    }
    put_packed(&values[packed..], width, out);
}

fn put_run(length: usize, value: u32, width: u32, out: &mut Vec<u8>) {
    put_varint((length as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Writes values bit by bit. The last eight are filled with zeros.
fn put_packed(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    put_varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
    let fill = values.len().next_multiple_of(8) - values.len();
    let (mut word, mut bits) = (0_u64, 0);
    for value in values.iter().copied().chain(std::iter::repeat_n(0, fill)) {
        word |= u64::from(value) << bits;
        bits += width;
        if bits >= 32 {
            out.extend_from_slice(&(word as u32).to_le_bytes()); // the lower half
            word >>= 32;
            bits -= 32;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80); // the lowest seven bits
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_packed_and_runs_are_counted() {
        let mut out = Vec::new();
        put_hybrid(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010], "the example of the format");
        out.clear();
        put_hybrid(&[1; 100], 1, &mut out);
        assert_eq!(out, [200, 1, 1]);
        out.clear();
        let mixed = [&[1, 0, 1][..], &[1; 40], &[0]].concat();
        put_hybrid(&mixed, 1, &mut out);
        assert_eq!(out, [0b11, 0b1111_1101, 70, 1, 0b11, 0], "the run gives six to the first eight");
    }

    #[test]
    fn integers_that_repeat_have_codes_and_others_have_none() {
        let runs: Vec<i64> = [7; 40].into_iter().chain([i64::MIN; 40]).chain([7; 20]).collect();
        let coded = Coded::of_ints(&runs, &[]).expect("three runs");
        let Coding::Ints(values) = &coded.values else { panic!("integers") };
        assert_eq!(values[..], [7, i64::MIN]);
        let of_codes = coded.codes.iter().map(|code| values[*code as usize]);
        assert!(of_codes.eq(runs));
        assert!(Coded::of_ints(&[], &[false; 9]).is_some_and(|none| none.rows() == 9), "no row has a value");
        assert!(Coded::of_ints(&[1, 2, 3], &[]).is_none());
    }
}
