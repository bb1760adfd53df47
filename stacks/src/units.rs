//! The units of debug information that a few addresses need.
//!
//! A program has a unit for each part that was compiled on its own, some thousand. To know the functions of
//! one, its table of abbreviations is read first. So only the units that contain an address are shown to the
//! reader; it finds all others as one that it passes over.

use std::collections::{BTreeMap, BTreeSet};

use addr2line::gimli::{
    Dwarf, EndianSlice, Endianity, Error, Reader, Result, RunTimeEndian, Section as _, constants,
};

use crate::section::{Part, Section};

/// The most units that are read: a program of a gigabyte has some 10,000. Each takes memory.
const MOST: usize = 1 << 20;

/// Returns `.debug_info` without the units that contain none of the addresses, as far as `.debug_aranges`
/// tells. `None`: it tells of no such unit.
///
/// # Errors
/// The sections are malformed, or there are too many units.
pub(crate) fn section_with<'s>(
    dwarf: &Dwarf<Part<'s>>,
    addresses: &BTreeSet<u64>,
) -> Result<Option<Section<'s>>> {
    let section = dwarf.debug_info.reader().section();
    let instead = passed_over(section, &wanted(dwarf, addresses)?)?;
    Ok((!instead.is_empty()).then(|| section.with(instead)))
}

/// Returns whether each unit with address ranges contains one of the addresses, by the unit's place.
fn wanted(dwarf: &Dwarf<Part<'_>>, addresses: &BTreeSet<u64>) -> Result<BTreeMap<usize, bool>> {
    let mut wanted = BTreeMap::new();
    let mut headers = dwarf.debug_aranges.headers();
    while let Some(header) = headers.next()? {
        let wanted = wanted.entry(header.debug_info_offset().0).or_default();
        let mut entries = header.entries();
        while let Some(entry) = entries.next().transpose() {
            *wanted |= entry.map_or(true, |entry| {
                let range = entry.range();
                range.begin < range.end && addresses.range(range.begin..range.end).next().is_some()
            });
        }
    }
    Ok(wanted)
}

/// Returns a header for each stretch of units that are not wanted, at its begin. A unit without address
/// ranges is wanted.
fn passed_over(section: &Section<'_>, wanted: &BTreeMap<usize, bool>) -> Result<Vec<(usize, Box<[u8]>)>> {
    let (mut instead, mut stretch, mut at, mut units) = (Vec::new(), None, 0, 0..MOST);
    while at < section.size() {
        units.next().ok_or(Error::OffsetOutOfBounds(at as u64))?;
        let is_wanted = wanted.get(&at).copied().unwrap_or(true);
        if is_wanted {
            add(&mut instead, stretch.take(), at, section.endian());
        } else {
            stretch = stretch.or(Some(at));
        }
        at = end(section, at)?;
    }
    add(&mut instead, stretch, section.size(), section.endian());
    Ok(instead)
}

/// Returns the place after a unit.
fn end(section: &Section<'_>, at: usize) -> Result<usize> {
    let mut bytes = [0; 12];
    let len = section.copy(at, &mut bytes)?;
    let mut header = EndianSlice::new(&bytes[..len], section.endian());
    let (unit, _) = header.read_initial_length()?;
    let before = len - header.len();
    Ok(at.saturating_add(before).saturating_add(unit))
}

/// The bytes of the header below.
const HEADER: usize = 24;

/// Adds the header of a unit of types from `start` to `end`: such a unit has no functions. A shorter stretch
/// stays as it is.
fn add(instead: &mut Vec<(usize, Box<[u8]>)>, start: Option<usize>, end: usize, endian: RunTimeEndian) {
    let Some(start) = start.filter(|start| start + HEADER <= end) else { return };
    let Ok(length) = u32::try_from(end - start - size_of::<u32>()) else { return };
    let mut header = vec![0; HEADER].into_boxed_slice(); // signature, offsets: 0
    endian.write_u32(&mut header[..4], length);
    endian.write_u16(&mut header[4..6], 5); // DWARF 5, 7.5.1
    header[6] = constants::DW_UT_type.0;
    header[7] = 8; // bytes of an address
    instead.push((start, header));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_are_not_wanted_are_one_that_is_passed_over() {
        let unit = |size: usize| [&(size as u32 - 4).to_le_bytes(), &*vec![b'u'; size - 4]].concat();
        let bytes = [unit(40), unit(30), unit(30), unit(50), unit(20), unit(60)].concat();
        let section = Section::in_memory(bytes.into(), RunTimeEndian::Little);
        // The one at 40 has no address ranges.
        let wanted = BTreeMap::from([(0, false), (70, false), (100, false), (150, true), (170, false)]);
        let instead = passed_over(&section, &wanted).unwrap();
        let headers =
            instead.iter().map(|(at, header)| (*at, u32::from_le_bytes(*header.first_chunk().unwrap())));
        assert_eq!(headers.collect::<Vec<_>>(), [(0, 36), (70, 76), (170, 56)]);
        let short = BTreeMap::from([(150, false)]);
        assert!(passed_over(&section, &short).unwrap().is_empty());
    }

    #[test]
    fn units_without_end_are_not_counted_to_the_end() {
        let of = |bytes: Vec<u8>| Section::in_memory(bytes.into(), RunTimeEndian::Little);
        assert!(passed_over(&of(vec![0; 4 * MOST]), &BTreeMap::new()).is_ok());
        assert!(passed_over(&of(vec![0; 4 * (MOST + 1)]), &BTreeMap::new()).is_err());
        assert!(passed_over(&of(vec![0; 3]), &BTreeMap::new()).is_err());
    }
}
