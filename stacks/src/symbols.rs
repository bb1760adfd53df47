//! The functions of addresses: from the debug information with inlined functions and lines, else from the
//! symbol table.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use addr2line::Context;
use addr2line::gimli::{self, AbbreviationsCacheStrategy, Dwarf, DwarfSections, RunTimeEndian, SectionId};
use hairline_formats::track_event::{AddressSymbols, Line, SequenceId, module_symbols};
use object::read::ReadCache;
use object::{
    CompressionFormat, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolIndex, SymbolKind,
};

use crate::file::{Bytes, Content, ProgramFile, regular};
use crate::section::{Part, Section};
use crate::table::{Frame, Table, UNKNOWN};
use crate::units;

/// The addresses of a packet, which has then some 15 KB and rarely more than a blob.
const ADDRESSES_OF_A_PACKET: usize = 32;

/// The most bytes of debug information that are read of a file, after their decompression. A file with more
/// has the functions of its symbol table.
const MOST_DEBUG: u64 = 2 << 30;

/// A function, with its source if that is known.
#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    file: String,
    line: u32,
}

/// The functions that were looked up, by file and address: none where there is none.
#[derive(Debug, Default)]
pub(crate) struct Known {
    functions: Mutex<BTreeMap<Identity, Functions>>,
    /// Whether this process is the one that is recorded. It does not inflate the debug information of its
    /// libraries: that of libc takes 70 ms and 12 MB, for lines and inlined functions that are not the
    /// program's.
    is_in_program: bool,
    /// The end of the path of a source file, whose functions are left out where they are inlined in others.
    without: Option<PathBuf>,
}

/// What tells files apart in all windows: path, build id, time of writing and size.
type Identity = (String, Vec<u8>, Option<(SystemTime, u64)>);

/// The functions of a file's addresses: the innermost first, at one address.
type Functions = BTreeMap<u64, Vec<Function>>;

impl Known {
    pub(crate) fn in_program() -> Self {
        Self { is_in_program: true, ..Self::default() }
    }

    /// Gives an address without code a name.
    pub(crate) fn naming(self, address: u64, name: &str) -> Self {
        let function = Function { name: name.to_owned(), file: String::new(), line: 0 };
        let nowhere = (UNKNOWN.to_owned(), Vec::new(), None);
        let functions = Functions::from([(address, vec![function])]);
        Self { functions: Mutex::new(BTreeMap::from([(nowhere, functions)])), ..self }
    }

    /// Leaves out the functions of a source file, by the end of its path, where they are inlined in others.
    pub(crate) fn without(self, path: &str) -> Self {
        Self { without: Some(path.into()), ..self }
    }

    /// Looks up the functions of these frames that are not known yet.
    pub(crate) fn look_up<'f>(
        &self,
        files: &[Arc<ProgramFile>],
        table: &Table,
        frames: impl Iterator<Item = &'f Frame>,
    ) {
        let mut known = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, addresses) in by_file(files, table, frames) {
            let known = known.entry(identity(file)).or_default();
            let new: BTreeSet<u64> =
                addresses.into_iter().filter(|address| !known.contains_key(address)).collect();
            if !new.is_empty() {
                let found = functions(file, &new, self.inflates(file));
                known.extend(found.into_iter().map(|(address, functions)| (address, self.kept(functions))));
                for address in new {
                    known.entry(address).or_default();
                }
            }
        }
    }

    /// Writes the functions of these frames. Looks up those that are not known yet.
    pub(crate) fn write<'f>(
        &self,
        out: &mut Vec<u8>,
        sequence: SequenceId,
        files: &[Arc<ProgramFile>],
        table: &Table,
        frames: impl Iterator<Item = &'f Frame> + Clone,
    ) {
        self.look_up(files, table, frames.clone());
        let known = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, addresses) in by_file(files, table, frames) {
            let Some(known) = known.get(&identity(file)) else { continue };
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

    /// Returns the functions of an address, the innermost first, but for those that are left out.
    fn kept(&self, mut functions: Vec<Function>) -> Vec<Function> {
        if let Some(path) = &self.without {
            let is_kept = |of: &Function| !Path::new(&of.file).ends_with(path);
            // An address with a function does not become one without.
            let left_out = functions.iter().position(is_kept).unwrap_or(0);
            functions.drain(..left_out);
        }
        functions
    }

    /// Whether compressed debug information of the file is read.
    fn inflates(&self, file: &ProgramFile) -> bool {
        let is_program = || std::env::current_exe().is_ok_and(|program| program == Path::new(&file.path));
        !self.is_in_program || is_program()
    }
}

/// What tells a file apart from others, as it is now.
fn identity(file: &ProgramFile) -> Identity {
    (file.path.clone(), file.build_id.clone(), file.written())
}

/// The addresses of these frames, by their files.
fn by_file<'a, 'f>(
    files: &'a [Arc<ProgramFile>],
    table: &Table,
    frames: impl Iterator<Item = &'f Frame>,
) -> impl Iterator<Item = (&'a Arc<ProgramFile>, BTreeSet<u64>)> {
    let mut addresses: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for frame in frames {
        if let Some(mapping) = table.mappings.values().get(frame.mapping as usize) {
            addresses.entry(mapping.file).or_default().insert(frame.rel_pc);
        }
    }
    addresses.into_iter().filter_map(|(number, of)| Some((files.get(number as usize)?, of)))
}

fn symbols(address: u64, functions: &[Function]) -> AddressSymbols<'_> {
    let lines = functions.iter().map(|of| Line { function: &of.name, file: &of.file, line: of.line });
    AddressSymbols { address, lines: lines.collect() }
}

/// Returns the functions of each address that has any. `inflates`: whether compressed debug information is
/// read.
fn functions(file: &ProgramFile, addresses: &BTreeSet<u64>, inflates: bool) -> Vec<(u64, Vec<Function>)> {
    let Some((content, bytes)) = file.content().zip(file.bytes()) else { return Vec::new() };
    let Some(elf) = same(&content, &file.build_id) else { return Vec::new() };
    if elf.section_by_name(".debug_info").is_some() {
        return found(&elf, bytes, addresses, inflates);
    }
    // A distribution has the debug information in a file of its own, by the build id.
    let Some(separate) = separate(&file.build_id).and_then(|path| regular(&path)) else {
        return found(&elf, bytes, addresses, inflates);
    };
    let content: Content<'_> = ReadCache::new(Box::new(&separate));
    match same(&content, &file.build_id) {
        Some(separate_elf) => found(&separate_elf, Box::new(&separate), addresses, inflates),
        None => found(&elf, bytes, addresses, inflates),
    }
}

/// Looks up the addresses in this file. `bytes` are its own.
fn found<'b>(
    elf: &Elf<'_, '_>,
    bytes: Box<dyn Bytes + 'b>,
    addresses: &BTreeSet<u64>,
    inflates: bool,
) -> Vec<(u64, Vec<Function>)> {
    let table = SymbolTable::new(elf);
    let mut found = Vec::new();
    with_debug(elf, bytes, inflates, addresses, &mut |debug| {
        for address in addresses {
            let inlined = debug.map_or(Vec::new(), |debug| debug.functions(*address, &table));
            let functions = if inlined.is_empty() { table.function(*address) } else { inlined };
            if !functions.is_empty() {
                found.push((*address, functions));
            }
        }
    });
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

/// Calls `look_up` with the debug information of these addresses.
fn with_debug<'b>(
    elf: &Elf<'_, '_>,
    bytes: Box<dyn Bytes + 'b>,
    inflates: bool,
    addresses: &BTreeSet<u64>,
    look_up: &mut dyn FnMut(Option<&Debug<'_>>),
) {
    if debug_bytes(elf.sections()) > MOST_DEBUG || !inflates && is_compressed(elf) {
        return look_up(None);
    }
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let bytes = RefCell::new(bytes);
    let read_at = |at: u64, to: &mut [u8]| {
        let mut bytes = bytes.borrow_mut();
        bytes.seek(SeekFrom::Start(at)).and_then(|_| bytes.read_exact(to))
    };
    let section = |id: SectionId| -> Result<Section<'_>, object::Error> {
        let empty = Section::in_memory(Box::default(), endian);
        let section = Some(id).filter(has_lines).and_then(|id| elf.section_by_name(id.name()));
        let Some(section) = section else { return Ok(empty) };
        let place = section.compressed_file_range()?;
        if place.format != CompressionFormat::None {
            let inflated = section.uncompressed_data()?.into_owned();
            return Ok(Section::in_memory(inflated.into(), endian));
        }
        // Its bytes are bounded, above.
        let size = usize::try_from(place.uncompressed_size);
        Ok(size.map_or(empty, |size| Section::in_file(&read_at, place.offset, size, endian)))
    };
    let Ok(sections) = DwarfSections::load(section) else { return look_up(None) };
    let dwarf = || -> Dwarf<Part<'_>> { sections.borrow(Part::whole) };
    let Ok(section) = units::section_with(&dwarf(), addresses) else { return look_up(None) };
    let of_addresses = section
        .as_ref()
        .and_then(|section| context(Dwarf { debug_info: Part::whole(section).into(), ..dwarf() }));
    look_up(Some(&Debug { of_addresses, all: OnceCell::new(), dwarf: &dwarf }));
}

/// Returns the units of debug information. `None` if they are malformed.
fn context(mut dwarf: Dwarf<Part<'_>>) -> Option<Context<Part<'_>>> {
    // After link-time optimisation most units share their table of abbreviations.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Context::from_dwarf(dwarf).ok()
}

/// Whether debug information has to be inflated before it can be read.
fn is_compressed(elf: &Elf<'_, '_>) -> bool {
    let section = elf.section_by_name(SectionId::DebugInfo.name());
    let place = section.and_then(|section| section.compressed_file_range().ok());
    place.is_some_and(|place| place.format != CompressionFormat::None)
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
struct Debug<'a> {
    /// The units of the addresses. It may refer to others, in a program with link-time optimisation.
    of_addresses: Option<Context<Part<'a>>>,
    /// All units, as soon as one of them is needed. `None` if they are malformed.
    all: OnceCell<Option<Context<Part<'a>>>>,
    dwarf: &'a dyn Fn() -> Dwarf<Part<'a>>,
}

impl Debug<'_> {
    /// Returns the function at the address and, if it is inlined, its callers up to one that is not.
    fn functions(&self, address: u64, table: &SymbolTable<'_, '_, '_>) -> Vec<Function> {
        let mut functions = Vec::new();
        let of_address = self.of_addresses.as_ref();
        let has_all =
            of_address.is_some_and(|units| add_functions(&mut functions, units, address, table).is_ok());
        if !has_all {
            functions.clear();
            let all = self.all.get_or_init(|| context((self.dwarf)()));
            // Those before what is malformed are right.
            let _ = all.as_ref().map(|units| add_functions(&mut functions, units, address, table));
        }
        // Debug information of lines only has names without their modules. The symbol table has the whole one.
        let whole = table.name(address).filter(|name| name.contains("::"));
        let short = functions.last_mut().filter(|function| !function.name.contains("::"));
        if let (Some(function), Some(name)) = (short, whole) {
            function.name = name;
        }
        functions
    }
}

fn add_functions(
    functions: &mut Vec<Function>,
    units: &Context<Part<'_>>,
    address: u64,
    table: &SymbolTable<'_, '_, '_>,
) -> gimli::Result<()> {
    let mut frames = units.find_frames(address).skip_all_loads()?;
    while let Some(frame) = frames.next()? {
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
    Ok(())
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
            // In this order: whether a symbol without a type is a definition depends on its name.
            .filter(|(_, symbol)| symbol.kind() == SymbolKind::Text && symbol.is_definition())
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
        let name = name.split('@').next().unwrap_or(name); // without the version: `read@GLIBC_2.2.5`
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
            let file = || Box::new(Cursor::new(with_compressed(size)));
            let content: Content<'_> = ReadCache::new(file());
            let elf = object::File::parse(&content).unwrap();
            assert_eq!(debug_bytes(elf.sections()), size);
            let mut has = None;
            with_debug(&elf, file(), true, &BTreeSet::new(), &mut |debug: Option<&Debug<'_>>| {
                has = Some(debug.is_some());
            });
            has.unwrap()
        };
        assert!(!has_debug(MOST_DEBUG + 1) && !has_debug(u64::MAX));
    }

    /// Returns what is known of addresses in the file: by their units, and by all units.
    /// An address in so many symbols is asked for.
    fn by_some_and_by_all(path: &str, every: usize) -> [BTreeMap<u64, Vec<Function>>; 2] {
        let file = ProgramFile::open(std::process::id(), path, u64::MAX);
        let content = file.content().unwrap();
        let elf = same(&content, &file.build_id).unwrap();
        let table = SymbolTable::new(&elf);
        let addresses: BTreeSet<u64> =
            table.symbols.iter().step_by(every).map(|(at, size, _)| at + size / 2).collect();
        let mut both = [BTreeMap::new(), BTreeMap::new()];
        with_debug(&elf, file.bytes().unwrap(), true, &addresses, &mut |debug| {
            let debug = debug.unwrap();
            let all = Debug { of_addresses: None, all: OnceCell::new(), dwarf: debug.dwarf };
            for address in &addresses {
                both[0].insert(*address, debug.functions(*address, &table));
                both[1].insert(*address, all.functions(*address, &table));
            }
        });
        both
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_units_of_an_address_know_is_what_all_units_know() {
        let path = std::env::current_exe().unwrap();
        let [some, all] = by_some_and_by_all(path.to_str().unwrap(), 11);
        assert!(all.len() > 100 && all.values().any(|functions| functions.len() > 1), "{}", all.len());
        assert_eq!(some, all);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_does_not_inflate_the_debug_information_of_its_libraries() {
        let folder = std::env::temp_dir().join(format!("hairline-stacks-library-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (source, library) = (folder.join("answers.rs"), folder.join("answers.so"));
        std::fs::write(&source, "#[unsafe(no_mangle)]\npub extern \"C\" fn answer() -> u32 {\n    42\n}\n")
            .unwrap();
        let mut rustc = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition=2024", "--crate-type=cdylib", "-g", "-o"]).args([&library, &source]);
        assert!(rustc.arg("-Clink-arg=-Wl,--compress-debug-sections=zlib").status().unwrap().success());

        let file = ProgramFile::open(std::process::id(), library.to_str().unwrap(), u64::MAX);
        let content = file.content().unwrap();
        let elf = same(&content, &file.build_id).unwrap();
        let answer = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok("answer")).unwrap();
        let look_up = |known: &Known| {
            let found = functions(&file, &BTreeSet::from([answer.address()]), known.inflates(&file));
            found
                .into_iter()
                .flat_map(|(_, found)| found)
                .map(|of| (of.name, of.line > 0))
                .collect::<Vec<_>>()
        };
        assert_eq!(look_up(&Known::in_program()), [("answer".to_owned(), false)], "its name is known");
        assert_eq!(look_up(&Known::default()), [("answer".to_owned(), true)], "a tool reads lines");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
