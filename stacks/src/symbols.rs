//! The functions of addresses: from the debug information with inlined functions and lines, else from the
//! symbol table.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use hairline_formats::track_event::{AddressSymbols, Line, SequenceId, module_symbols};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolIndex, SymbolKind};

use crate::file::{Content, ProgramFile, regular};
use crate::table::{Frame, Table};

/// The addresses of a packet, which has then some 15 KB and rarely more than a blob.
const ADDRESSES_OF_A_PACKET: usize = 32;

/// The most bytes of debug information that are read of a file, after their decompression. A file with more
/// has the functions of its symbol table.
const MOST_DEBUG: u64 = 2 << 30;

/// A function, with its source if that is known.
#[derive(Debug)]
struct Function {
    name: String,
    file: String,
    line: u32,
}

/// The functions that were looked up, by file and address: none where there is none.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<BTreeMap<Identity, Functions>>);

/// What tells files apart in all windows: path, build id, time of writing and size.
type Identity = (String, Vec<u8>, Option<(SystemTime, u64)>);

/// The functions of a file's addresses: the innermost first, at one address.
type Functions = BTreeMap<u64, Vec<Function>>;

impl Known {
    /// Writes the functions of these frames. Looks up those that are not known yet.
    pub(crate) fn write<'f>(
        &self,
        out: &mut Vec<u8>,
        sequence: SequenceId,
        files: &[Arc<ProgramFile>],
        table: &Table,
        frames: impl Iterator<Item = &'f Frame>,
    ) {
        let mut addresses: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for frame in frames {
            if let Some(mapping) = table.mappings.values().get(frame.mapping as usize) {
                addresses.entry(mapping.file).or_default().insert(frame.rel_pc);
            }
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, addresses) in addresses {
            let Some(file) = files.get(number as usize) else { continue };
            let identity = (file.path.clone(), file.build_id.clone(), file.written());
            let known = known.entry(identity).or_default();
            let new: BTreeSet<u64> =
                addresses.iter().copied().filter(|address| !known.contains_key(address)).collect();
            if !new.is_empty() {
                known.extend(functions(file, &new));
                for address in new {
                    known.entry(address).or_default();
                }
            }
            let found = addresses.iter().filter_map(|address| Some((*address, known.get(address)?)));
            let found = found.filter(|(_, functions)| !functions.is_empty());
            let symbols: Vec<AddressSymbols<'_>> = found.map(|(at, found)| symbols(at, found)).collect();
            // Importers begin each path with a slash, also that of a mapping without a file.
            let slash = if file.path.starts_with('/') { "" } else { "/" };
            let path = format!("{slash}{}", file.path);
            for symbols in symbols.chunks(ADDRESSES_OF_A_PACKET) {
                module_symbols(out, sequence, &path, &file.build_id, symbols);
            }
        }
    }
}

fn symbols(address: u64, functions: &[Function]) -> AddressSymbols<'_> {
    let lines = functions.iter().map(|of| Line { function: &of.name, file: &of.file, line: of.line });
    AddressSymbols { address, lines: lines.collect() }
}

/// Returns the functions of each address that has any.
fn functions(file: &ProgramFile, addresses: &BTreeSet<u64>) -> Vec<(u64, Vec<Function>)> {
    let Some(content) = file.content() else { return Vec::new() };
    let Some(elf) = same(&content, &file.build_id) else { return Vec::new() };
    let table = SymbolTable::new(&elf);
    let mut found = Vec::new();
    let mut look_up = |debug: Option<&Debug<'_>>| {
        for address in addresses {
            let inlined = debug.map_or(Vec::new(), |debug| debug.functions(*address, &table));
            let functions = if inlined.is_empty() { table.function(*address) } else { inlined };
            if !functions.is_empty() {
                found.push((*address, functions));
            }
        }
    };
    if elf.section_by_name(".debug_info").is_some() {
        with_debug(&elf, &mut look_up);
        return found;
    }
    // A distribution has the debug information in a file of its own, by the build id.
    let separate = separate(&file.build_id).and_then(|path| regular(&path));
    let Some(separate) = separate else {
        look_up(None);
        return found;
    };
    let content: Content<'_> = ReadCache::new(Box::new(separate));
    match same(&content, &file.build_id) {
        Some(elf) => with_debug(&elf, &mut look_up),
        None => look_up(None),
    }
    found
}

type Elf<'a, 'c> = object::File<'a, &'a Content<'c>>;

/// Parses a file. `None`: it is malformed, or another one than was mapped.
fn same<'a, 'c>(content: &'a Content<'c>, build_id: &[u8]) -> Option<Elf<'a, 'c>> {
    let elf = object::File::parse(content).ok()?;
    (elf.build_id().ok().flatten().unwrap_or_default() == build_id).then_some(elf)
}

fn separate(build_id: &[u8]) -> Option<PathBuf> {
    let hex: Vec<String> = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_first()?;
    Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{}.debug", rest.concat())))
}

/// Calls `look_up` with the debug information.
fn with_debug(elf: &Elf<'_, '_>, look_up: &mut dyn FnMut(Option<&Debug<'_>>)) {
    if debug_bytes(elf.sections()) > MOST_DEBUG {
        return look_up(None);
    }
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = |id: SectionId| -> Result<Cow<'_, [u8]>, object::Error> {
        let section = Some(id).filter(has_lines).and_then(|id| elf.section_by_name(id.name()));
        section.map_or(Ok(Cow::Borrowed(&[][..])), |s| s.uncompressed_data())
    };
    let Ok(sections) = addr2line::gimli::DwarfSections::load(section) else { return look_up(None) };
    let dwarf: Dwarf<EndianSlice<'_, RunTimeEndian>> =
        sections.borrow(|section| EndianSlice::new(section, endian));
    match Context::from_dwarf(dwarf) {
        Ok(context) => look_up(Some(&Debug(context))),
        Err(_) => look_up(None),
    }
}

/// Whether functions and lines need a section: those of variables and macros are a fifth of the bytes, and
/// may have to be decompressed.
fn has_lines(id: &SectionId) -> bool {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro};
    ![DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro].contains(id)
}

/// Returns the size that debug information has in memory, as its headers say.
fn debug_bytes<'d>(sections: impl Iterator<Item = impl ObjectSection<'d>>) -> u64 {
    let of_debug = sections.filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")));
    let sizes = of_debug.filter_map(|section| Some(section.compressed_file_range().ok()?.uncompressed_size));
    sizes.fold(0, u64::saturating_add)
}

/// The debug information of a file.
struct Debug<'a>(Context<EndianSlice<'a, RunTimeEndian>>);

impl Debug<'_> {
    /// Returns the function at the address and, if it is inlined, its callers up to one that is not.
    fn functions(&self, address: u64, table: &SymbolTable<'_, '_, '_>) -> Vec<Function> {
        let mut functions = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else { return functions };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|f| f.demangle().ok().map(Cow::into_owned));
            let (mut file, mut line) = (String::new(), 0);
            if let Some(location) = frame.location {
                file = location.file.unwrap_or_default().to_owned();
                line = location.line.unwrap_or(0);
            }
            // A unit may have lines and no functions.
            let name = name.or_else(|| table.name(address));
            if let Some(name) = name {
                functions.push(Function { name, file, line });
            }
        }
        // Debug information of lines only has names without their modules. The symbol table has the whole
        // one.
        let whole = table.name(address).filter(|name| name.contains("::"));
        let short = functions.last_mut().filter(|function| !function.name.contains("::"));
        if let (Some(function), Some(name)) = (short, whole) {
            function.name = name;
        }
        functions
    }
}

/// The functions of the symbol tables, by address. Their names are read when they are asked for: each takes
/// two system calls, and a program has some 100,000.
struct SymbolTable<'e, 'a, 'c> {
    elf: &'e Elf<'a, 'c>,
    symbols: Vec<(u64, u64, Of)>,
}

/// A symbol, by its number in one of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Program(usize),
    Dynamic(usize),
}

impl<'e, 'a, 'c> SymbolTable<'e, 'a, 'c> {
    fn new(elf: &'e Elf<'a, 'c>) -> Self {
        let program = elf.symbols().map(|symbol| (Of::Program(symbol.index().0), symbol));
        let dynamic = elf.dynamic_symbols().map(|symbol| (Of::Dynamic(symbol.index().0), symbol));
        let mut symbols: Vec<(u64, u64, Of)> = program
            .chain(dynamic)
            .filter(|(_, symbol)| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .map(|(of, symbol)| (symbol.address(), symbol.size(), of))
            .collect();
        symbols.sort_unstable();
        Self { elf, symbols }
    }

    fn read(&self, of: Of) -> Option<&str> {
        let symbol = match of {
            Of::Program(index) => self.elf.symbol_by_index(SymbolIndex(index)),
            Of::Dynamic(index) => self.elf.dynamic_symbol_table()?.symbol_by_index(SymbolIndex(index)),
        };
        symbol.ok()?.name().ok()
    }

    fn name(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (start, size, _) = *self.symbols[..after].last()?;
        // A function may have several names.
        let same = self.symbols[..after].iter().rev().take_while(|of| (of.0, of.1) == (start, size));
        let name = same.filter_map(|(.., of)| self.read(*of)).max()?;
        // Code by hand may have symbols without a size.
        let is_inside = size == 0 || address - start < size;
        is_inside.then(|| addr2line::demangle_auto(Cow::from(name), None).into_owned())
    }

    fn function(&self, address: u64) -> Vec<Function> {
        let function = |name| Function { name, file: String::new(), line: 0 };
        self.name(address).map(function).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// An ELF file whose only section is compressed, by the header: type and size that follow.
    fn with_compressed(size: u64) -> Vec<u8> {
        let names = b"\0.debug_info\0.shstrtab\0";
        let mut file = vec![0; 64];
        file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        let compressed = file.len() as u64;
        file.extend([1_u64.to_le_bytes(), size.to_le_bytes(), 1_u64.to_le_bytes()].concat()); // zlib
        let names_at = file.len() as u64;
        file.extend(names);
        let sections = file.len() as u64;
        let mut section = |name: u32, kind: u32, flags: u64, at: u64, size: u64| {
            file.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([flags, 0, at, size, 0, 1, 0].map(u64::to_le_bytes).concat());
        };
        section(0, 0, 0, 0, 0);
        section(1, 1, 0x800, compressed, 24);
        section(13, 3, 0, names_at, names.len() as u64);
        for (at, value) in [(16, 3_u16), (18, 62), (20, 1), (52, 64), (58, 64), (60, 3), (62, 2)] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        file[40..48].copy_from_slice(&sections.to_le_bytes());
        file
    }

    #[test]
    fn debug_information_that_would_fill_the_memory_is_not_read() {
        let has_debug = |size: u64| {
            let content: Content<'_> = ReadCache::new(Box::new(Cursor::new(with_compressed(size))));
            let elf = object::File::parse(&content).unwrap();
            assert_eq!(debug_bytes(elf.sections()), size);
            let mut has = None;
            with_debug(&elf, &mut |debug| has = Some(debug.is_some()));
            has.unwrap()
        };
        assert!(!has_debug(MOST_DEBUG + 1) && !has_debug(u64::MAX));
    }
}
