//! The tables of the providers. Each provider has its own strings, threads and clock. Its records may
//! redefine them at any time.

use std::collections::HashMap;

use hairline_formats::fxt::{StringRef, ThreadRef};

use crate::fxt::read::rate::Rate;
use crate::{BriefEvent, StringId, Strings, Text};

/// The limit for the entries of all tables. A definition has a few bytes, but an index needs memory for all
/// indices below it.
const MAX_ENTRIES: usize = 1 << 19;
/// The limit for the bytes of all strings.
const MAX_BYTES: usize = 16 << 20;
/// The limit for stored providers.
const MAX_PROVIDERS: usize = 1 << 12;

/// Stands for a string without a number, and for an index that is not defined.
const UNNUMBERED: u32 = u32::MAX;

/// The tables of the current provider, and of the earlier ones.
#[derive(Debug, Default)]
pub(super) struct Tables {
    current: Provider,
    id: u32,
    others: HashMap<u32, Provider>,
    /// Entries and bytes of the strings of all providers.
    entries: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Provider {
    rate: Rate,
    strings: Vec<Option<Entry>>,
    /// The number of each string plus 1, apart from its text, or [`UNNUMBERED`]. Index 0 is no string: 0.
    numbers: Vec<u32>,
    threads: Vec<Option<Thread>>,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    id: Option<StringId>,
}

/// A thread, and the index of its track after its first event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) track: Option<u32>,
}

impl Tables {
    #[inline]
    pub(super) fn rate(&self) -> Rate {
        self.current.rate
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.current.rate = rate;
    }

    /// Switches to a provider. Returns `false` if the tables of the previous one could not be kept.
    pub(super) fn section(&mut self, id: u32) -> bool {
        if id == self.id {
            return true;
        }
        let next = self.others.remove(&id).unwrap_or_default();
        let before = std::mem::replace(&mut self.current, next);
        let before_id = std::mem::replace(&mut self.id, id);
        let is_kept = self.others.len() < MAX_PROVIDERS;
        if is_kept {
            self.others.insert(before_id, before);
        } else {
            self.forget(&before);
        }
        is_kept
    }

    /// As `section`, for a provider that starts with empty tables.
    pub(super) fn new_provider(&mut self, id: u32) -> bool {
        let is_kept = self.section(id);
        let before = std::mem::take(&mut self.current);
        self.forget(&before);
        is_kept
    }

    fn forget(&mut self, provider: &Provider) {
        self.entries -= provider.strings.len();
        self.bytes -= provider.strings.iter().flatten().map(|entry| entry.text.len()).sum::<usize>();
    }

    /// Defines a string index. Returns `false` if there is no room for it.
    pub(super) fn set_string(&mut self, index: u16, value: &[u8], strings: &mut Strings) -> bool {
        let index = usize::from(index);
        let table = &mut self.current.strings;
        if index >= table.len() {
            let more = index + 1 - table.len();
            if self.entries + more > MAX_ENTRIES {
                return false;
            }
            self.entries += more;
            table.resize_with(index + 1, || None);
            self.current.numbers.resize(index + 1, UNNUMBERED);
        }
        self.current.numbers[index] = UNNUMBERED;
        self.current.numbers[0] = 0;
        let text = String::from_utf8_lossy(value);
        self.bytes -= table[index].take().map_or(0, |before| before.text.len());
        if self.bytes + text.len() > MAX_BYTES {
            return false;
        }
        self.bytes += text.len();
        let id = strings.number(&text);
        self.current.numbers[index] = BriefEvent::number(id).unwrap_or(UNNUMBERED);
        table[index] = Some(Entry { id, text: text.into() });
        true
    }

    /// Returns `None` for an undefined index.
    #[inline]
    pub(super) fn string<'a>(&'a self, string: StringRef<'a>) -> Option<Text<'a>> {
        match string {
            StringRef::Empty => Some(Text::default()),
            StringRef::Index(index) => {
                let entry = self.current.strings.get(usize::from(index))?.as_ref()?;
                Some(Text { text: &entry.text, id: entry.id })
            }
            StringRef::Inline(text) => Some(text.into()),
        }
    }

    /// The number of a string plus 1; 0 for index 0. `None` if it has no number, or is not defined.
    #[inline(always)] // for every event
    pub(super) fn number(&self, index: u16) -> Option<u32> {
        match self.current.numbers.get(usize::from(index)) {
            Some(&UNNUMBERED) => None,
            Some(number) => Some(*number),
            None => (index == 0).then_some(0),
        }
    }

    /// Whether the index is defined.
    #[inline]
    pub(super) fn has_string(&self, string: StringRef<'_>) -> bool {
        self.string(string).is_some()
    }

    pub(super) fn set_thread(&mut self, index: u8, process: u64, thread: u64) {
        let index = usize::from(index);
        let table = &mut self.current.threads;
        if index >= table.len() {
            table.resize(index + 1, None);
        }
        table[index] = Some(Thread { process, thread, track: None });
    }

    /// Returns `None` for an undefined index.
    #[inline]
    pub(super) fn thread(&self, thread: ThreadRef) -> Option<Thread> {
        match thread {
            ThreadRef::Index(index) => self.current.threads.get(usize::from(index)).copied().flatten(),
            ThreadRef::Inline { process, thread } => Some(Thread { process, thread, track: None }),
        }
    }

    /// Stores the index of a thread's track, so that later events need no search.
    pub(super) fn set_track(&mut self, thread: ThreadRef, track: u32) {
        if let ThreadRef::Index(index) = thread
            && let Some(Some(thread)) = self.current.threads.get_mut(usize::from(index))
        {
            thread.track = Some(track);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tables: &Tables, index: u16) -> Option<&str> {
        tables.string(StringRef::Index(index)).map(|text| text.text)
    }

    #[test]
    fn each_provider_has_its_own() {
        let (mut tables, mut strings) = (Tables::default(), Strings::default());
        assert!(tables.set_string(1, b"a", &mut strings) && tables.section(7));
        tables.set_thread(1, 2, 3);
        assert_eq!(text(&tables, 1), None);
        assert!(tables.set_string(1, b"b", &mut strings) && tables.set_string(1, b"c", &mut strings));
        assert!(tables.section(0));
        assert_eq!((text(&tables, 1), tables.thread(ThreadRef::Index(1)).is_none()), (Some("a"), true));
        assert!(tables.section(7));
        assert_eq!(text(&tables, 1), Some("c"));
        assert!(tables.new_provider(7));
        assert_eq!((text(&tables, 1), tables.bytes, tables.entries), (None, 1, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut tables, mut strings) = (Tables::default(), Strings::default());
        let (mut full, long) = (0, [b'x'; 32_000]);
        for id in 0..5_000 {
            tables.section(id);
            full += u32::from(!tables.set_string(32_767, &long, &mut strings));
        }
        assert!(full > 4_000 && tables.entries <= MAX_ENTRIES && tables.bytes <= MAX_BYTES);
        assert!(tables.others.len() <= MAX_PROVIDERS);
    }
}
