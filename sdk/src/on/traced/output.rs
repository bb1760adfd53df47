//! The output of a session that the tracing service records: its packets, for each instance of the data
//! source.
//!
//! A session records what any of its instances wants. Each packet goes to the instances that want its event,
//! there to the writer of its sequence. An instance that joins later begins as the next file of a rotation
//! does: with the state that packets rely on, and the begins of open slices ([`Carry`]).

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hairline_formats::proto::{FieldValue, Fields, put_field, put_uint};
use hairline_formats::track_event::fields::{
    EventType, InternedKind, counter_descriptor, interned_string, process_tree, sequence_flags, trace,
    trace_packet, trace_packet_defaults, track_descriptor, track_event, track_event_defaults,
};
use hairline_formats::track_event::{Carry, SequenceId};

use crate::filter::Filter;
use crate::on::base::platform::service::SharedMemory;
use crate::on::encode::OWN_SEQUENCE;
use crate::on::traced::changes::{Change, Changes};
use crate::on::traced::frames::{self, Method};
use crate::on::traced::link::{Link, PATIENCE};
use crate::on::traced::memory::{Memory, PAGES, Writer};
use crate::on::traced::wanted::fields;

/// The most writers: the service's limit in its versions before 2026. Each is a thread of an instance.
const MOST_WRITERS: u16 = 1023;

/// Complete pages after which the service is told.
const PAGES_OF_A_CALL: usize = PAGES / 16;

/// The first and the longest pause while the service frees no page.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Fields that only the service writes. A packet with one of them stays here; the number of its sequence is
/// left out.
const OF_SERVICE: [u32; 6] = [
    trace_packet::TRACE_STATS,
    trace_packet::SYNCHRONIZATION_MARKER,
    trace_packet::COMPRESSED_PACKETS,
    trace_packet::SERVICE_EVENT,
    trace_packet::SYSTEM_INFO,
    trace_packet::TRACE_UUID,
];

/// The output.
#[derive(Debug)]
pub(crate) struct ServiceOutput {
    link: Link,
    memory: Memory,
    numbers: Arc<Mutex<WriterNumbers>>,
    changes: Changes,
    instances: Vec<Instance>,
    /// Complete pages of which the service does not know, with their buffers.
    done: Vec<(u32, u16)>,
    carry: Carry,
    /// A time before which all events were committed when the pass began.
    pass_began: u64,
    /// The packets of the stream's head.
    head: Vec<u8>,
    /// Which instance wants which events. `None`: all want the same.
    sorting: Option<Sorting>,
    /// Events that no writer took.
    lost: u64,
    packet: Vec<u8>,
}

/// What the outputs of one connection have one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    memory: Arc<SharedMemory>,
    /// The service knows writers for the time of the connection.
    numbers: Arc<Mutex<WriterNumbers>>,
}

/// An instance of the data source.
#[derive(Debug)]
struct Instance {
    id: u64,
    buffer: u16,
    filter: Filter,
    /// Whether it wants each category, as far as that was asked.
    wants: Vec<Option<bool>>,
    sequences: HashMap<SequenceId, Sequence>,
}

/// A sequence of packets in an instance.
#[derive(Debug)]
struct Sequence {
    writer: Writer,
    /// The buffers that have had chunks of the writer's number, before this one.
    buffers: Vec<u16>,
    /// The time from the last packet that was written to the last one that was left out, in ns.
    behind: u64,
}

/// The numbers of writers.
#[derive(Debug, Default)]
pub(crate) struct WriterNumbers {
    last: u16,
    /// Those that are free again, the longest first.
    free: VecDeque<FreeNumber>,
}

/// The number of a writer that has ended.
#[derive(Debug)]
struct FreeNumber {
    id: u16,
    /// The number of the next chunk.
    next: u32,
    /// The buffers that have had its chunks, the last one at the end.
    buffers: Vec<u16>,
}

/// What tells the instances of an event.
#[derive(Debug, Default)]
struct Sorting {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    /// The category of each interned number.
    interned: HashMap<(SequenceId, u64), usize>,
    /// The category of each counter's track: its values do not name it.
    counters: HashMap<u64, usize>,
    /// The track of each sequence's thread.
    tracks: HashMap<SequenceId, u64>,
    /// The open slices of each track.
    open: HashMap<u64, Open>,
}

/// The open slices of a track.
#[derive(Debug, Default)]
struct Open {
    categories: Vec<Option<usize>>,
    /// Ends whose begins have not come: another thread has them.
    early: u64,
}

/// To which instances something goes: those whose number it has, all, or those that want a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    All,
    One(u64),
}

impl Ground {
    /// Of a connection that begins with this memory.
    pub(crate) fn new(memory: SharedMemory) -> Self {
        Self { memory: Arc::new(memory), numbers: Arc::default() }
    }
}

impl Drop for ServiceOutput {
    fn drop(&mut self) {
        let instances = std::mem::take(&mut self.instances);
        let writers = instances
            .into_iter()
            .flat_map(|instance| instance.sequences.into_values().map(move |of| (instance.buffer, of)));
        let _ = self.end_writers(writers.collect()); // a connection that has failed has no writers
    }
}

impl ServiceOutput {
    pub(crate) fn new(link: Link, ground: Ground, changes: Changes) -> Self {
        let Ground { memory, numbers } = ground;
        Self {
            link,
            memory: Memory::new(memory),
            numbers,
            changes,
            instances: Vec::new(),
            done: Vec::new(),
            carry: Carry::new(),
            pass_began: 0,
            head: Vec::new(),
            sorting: None,
            lost: 0,
            packet: Vec::new(),
        }
    }

    /// Returns the number of the connection's descriptor.
    pub(crate) fn number(&self) -> i32 {
        self.link.connection().number()
    }

    /// Returns the number of events that no writer took, since the last call.
    pub(crate) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    pub(crate) fn pass_begins(&mut self, now: u64) {
        self.pass_began = now;
    }

    /// Applies the changes of instances: between two passes, when no packets of a moment are missing.
    pub(crate) fn pass_ended(&mut self) -> io::Result<()> {
        self.carry.pass_ended(self.pass_began);
        self.tell()?;
        for change in self.changes.take() {
            self.apply(change)?;
        }
        Ok(())
    }

    /// Forgets a sequence that has ended.
    pub(crate) fn sequence_ended(&mut self, sequence: SequenceId) {
        self.carry.ended(sequence);
        let mut ended = Vec::new();
        for instance in &mut self.instances {
            ended.extend(instance.sequences.remove(&sequence).map(|of| (instance.buffer, of)));
        }
        // An error is that of the connection, which the next write finds.
        let _ = self.end_writers(ended);
        if let Some(sorting) = &mut self.sorting {
            sorting.interned.retain(|(of, _), _| *of != sequence);
            if let Some(track) = sorting.tracks.remove(&sequence) {
                sorting.open.remove(&track);
            }
        }
    }

    /// Writes whole packets.
    ///
    /// # Errors
    /// When the service has gone, or frees no page for [`PATIENCE`].
    pub(crate) fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        for part in parts {
            self.carry.look(part);
            for packet in packets(part) {
                self.deliver(packet, To::All)?;
            }
        }
        Ok(())
    }

    /// Writes the head of the stream, for the instances of the session's start.
    pub(crate) fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        for change in self.changes.take() {
            self.apply(change)?;
        }
        head.clone_into(&mut self.head);
        self.write(&[IoSlice::new(head)])
    }

    /// Gives all that is written to the service.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Self { instances, memory, done, .. } = self;
        for instance in instances {
            let buffer = instance.buffer;
            let pages = instance.sequences.values_mut().filter_map(|of| memory.complete(&mut of.writer));
            done.extend(pages.map(|page| (page, buffer)));
        }
        self.tell()
    }

    /// Tells the service of the complete pages.
    fn tell(&mut self) -> io::Result<()> {
        for pages in self.done.chunks(PAGES_OF_A_CALL) {
            self.link.call(Method::CommitData, &frames::commit(pages, None), None)?;
        }
        self.done.clear();
        if self.link.is_broken() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn apply(&mut self, change: Change) -> io::Result<()> {
        match change {
            Change::Join { id, buffer, filter } => {
                let sequences = HashMap::new();
                self.instances.push(Instance { id, buffer, filter, wants: Vec::new(), sequences });
                self.sort()?;
                let head = self.head.clone();
                for packet in packets(&head) {
                    self.deliver(packet, To::One(id))?;
                }
                for packet in self.carried() {
                    self.deliver(whole(&packet), To::One(id))?;
                }
            }
            Change::Leave(id) => {
                if let Some(place) = self.instances.iter().position(|instance| instance.id == id) {
                    let instance = self.instances.remove(place);
                    let writers = instance.sequences.into_values().map(|of| (instance.buffer, of));
                    self.end_writers(writers.collect())?;
                    self.sort()?;
                }
            }
            Change::Again(id) => {
                let mut state = Vec::new();
                self.carry.put_state(|packet| state.push(packet.to_vec()));
                for packet in state {
                    self.deliver(whole(&packet), To::One(id))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the state and the open slices.
    fn carried(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        self.carry.put(|packet| all.push(packet.to_vec()));
        all
    }

    /// Begins the sorting of events, if the instances want different ones. It goes on when those that differ have
    /// left: slices that only they wanted may be open.
    fn sort(&mut self) -> io::Result<()> {
        let first = self.instances.first().map(|instance| &instance.filter);
        let differ = self.instances.iter().any(|instance| Some(&instance.filter) != first);
        if differ && self.sorting.is_none() {
            let mut sorting = Sorting::default();
            for packet in self.carried() {
                let about = About::of(whole(&packet));
                sorting.learn(&about);
                sorting.category_of(&about);
            }
            self.instances.iter_mut().for_each(|instance| instance.wants.clear());
            self.sorting = Some(sorting);
        }
        Ok(())
    }

    /// Ends writers: their last chunks are complete, and their numbers are free again.
    fn end_writers(&mut self, ended: Vec<(u16, Sequence)>) -> io::Result<()> {
        let mut numbers = Vec::with_capacity(ended.len());
        for (buffer, Sequence { mut writer, mut buffers, .. }) in ended {
            self.done.extend(self.memory.complete(&mut writer).map(|page| (page, buffer)));
            if buffers.last() != Some(&buffer) {
                buffers.push(buffer);
            }
            numbers.push(FreeNumber { id: writer.id, next: writer.next_chunk(), buffers });
        }
        self.tell()?;
        for number in numbers {
            self.link.call(Method::UnregisterTraceWriter, &frames::number(u64::from(number.id)), None)?;
            self.numbers.lock().unwrap_or_else(PoisonError::into_inner).free.push_back(number);
        }
        Ok(())
    }

    /// Writes a packet to the instances that want it.
    fn deliver(&mut self, packet: &[u8], to: To) -> io::Result<()> {
        let about = About::of(packet);
        if about.is_of_service {
            return Ok(());
        }
        // What is carried was learnt when the sorting began.
        let category = match (&mut self.sorting, to) {
            (None, _) => None,
            (Some(sorting), To::All) => {
                sorting.learn(&about);
                sorting.category_of(&about)
            }
            (Some(sorting), To::One(_)) => sorting.category_of_carried(&about),
        };
        for place in 0..self.instances.len() {
            let Some(instance) = self.instances.get_mut(place) else { break };
            if let To::One(id) = to
                && id != instance.id
            {
                continue;
            }
            let is_wanted = match (category, &self.sorting) {
                (Some(category), Some(sorting)) => instance.wants(category, sorting),
                _ => true,
            };
            if is_wanted || about.has_state {
                self.deliver_to(place, &about, is_wanted)?;
            } else if let (Some(of), Some(delta)) = (self.sequence(place, about.sequence), about.delta) {
                of.behind = of.behind.wrapping_add(delta);
            }
        }
        Ok(())
    }

    fn sequence(&mut self, place: usize, number: SequenceId) -> Option<&mut Sequence> {
        self.instances.get_mut(place)?.sequences.get_mut(&number)
    }

    /// Writes a packet to the instance at `place`, without its event unless that is wanted.
    fn deliver_to(&mut self, place: usize, about: &About<'_>, with_event: bool) -> io::Result<()> {
        if self.sequence(place, about.sequence).is_none() {
            let Some(instance) = self.instances.get_mut(place) else { return Ok(()) };
            let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
            // Without its begin, a sequence would have the state of the one before it.
            let number = if about.needs_state { None } else { numbers.next(instance.buffer) };
            drop(numbers);
            let Some(FreeNumber { id, next, buffers }) = number else {
                self.lost += u64::from(about.event.is_some() && with_event);
                return Ok(());
            };
            let writer = Writer::new(id, next);
            instance.sequences.insert(about.sequence, Sequence { writer, buffers, behind: 0 });
            let arguments = frames::writer(id, instance.buffer);
            self.link.call(Method::RegisterTraceWriter, &arguments, None)?;
        }
        let mut packet = std::mem::take(&mut self.packet);
        packet.clear();
        let mut behind = 0;
        if let Some(of) = self.sequence(place, about.sequence)
            && (about.delta.is_some() || about.is_cleared)
        {
            behind = std::mem::take(&mut of.behind); // a sequence that begins anew has its time from there
        }
        about.put(&mut packet, behind, with_event);
        let written =
            if packet.is_empty() { Ok(()) } else { self.write_packet(place, about.sequence, &packet) };
        self.packet = packet;
        written
    }

    fn write_packet(&mut self, place: usize, number: SequenceId, packet: &[u8]) -> io::Result<()> {
        let (mut from, mut pause, mut until) = (0, FIRST_PAUSE, None);
        loop {
            let Self { instances, memory, done, .. } = self;
            let Some(instance) = instances.get_mut(place) else { return Ok(()) };
            let Some(of) = instance.sequences.get_mut(&number) else { return Ok(()) };
            let mut pages = Vec::new();
            let written = memory.write(&mut of.writer, packet, &mut from, &mut pages);
            done.extend(pages.into_iter().map(|page| (page, instance.buffer)));
            if written.is_ok() {
                return if self.done.len() >= PAGES_OF_A_CALL { self.tell() } else { Ok(()) };
            }
            // The service frees the pages that it is told of: all, but for that of this packet.
            let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
            if from == 0 {
                self.flush()?;
            } else {
                self.tell()?;
            }
            if Instant::now() >= until {
                self.link.break_off(); // the thread that is registered connects again
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the tracing service takes no data"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Instance {
    /// Whether it wants events of a category, or of one of several.
    fn wants(&mut self, category: usize, sorting: &Sorting) -> bool {
        if let Some(Some(wants)) = self.wants.get(category) {
            return *wants;
        }
        let name = sorting.names.get(category).map_or("", String::as_str);
        let wants = name.split(',').any(|name| self.filter.matches(name));
        if self.wants.len() <= category {
            self.wants.resize(category + 1, None);
        }
        if let Some(place) = self.wants.get_mut(category) {
            *place = Some(wants);
        }
        wants
    }
}

impl WriterNumbers {
    /// Returns a number that is free for this buffer. The service reads the chunks of a writer in the order of
    /// their numbers, up to one that the buffer does not have: so a number that went to other buffers does not
    /// come back.
    fn next(&mut self, buffer: u16) -> Option<FreeNumber> {
        if self.last < MOST_WRITERS {
            self.last += 1;
            return Some(FreeNumber { id: self.last, next: 0, buffers: Vec::new() });
        }
        let serves = |of: &FreeNumber| of.buffers.last() == Some(&buffer) || !of.buffers.contains(&buffer);
        let place = self.free.iter().position(serves)?;
        self.free.remove(place)
    }
}

impl Sorting {
    /// Notes the names of categories, and which sequence begins anew.
    fn learn(&mut self, about: &About<'_>) {
        let sequence = about.sequence;
        if about.is_cleared {
            self.interned.retain(|(of, _), _| *of != sequence);
        }
        if let Some(track) = about.defaults.and_then(default_track) {
            self.tracks.insert(sequence, track);
        }
        if let Some((track, category)) = about.track.and_then(counter_of) {
            let category = self.numbered(&category);
            self.counters.insert(track, category);
        }
        let categories = fields(about.interned.unwrap_or_default())
            .filter(|(number, _)| *number == InternedKind::Category as u32);
        for (_, value) in categories {
            let FieldValue::Bytes { bytes, .. } = value else { continue };
            let (mut iid, mut name) = (0, &b""[..]);
            for field in fields(bytes) {
                match field {
                    (interned_string::IID, FieldValue::Varint(v)) => iid = v,
                    (interned_string::NAME, FieldValue::Bytes { bytes, .. }) => name = bytes,
                    _ => {}
                }
            }
            let category = self.numbered(name);
            self.interned.insert((sequence, iid), category);
        }
    }

    fn numbered(&mut self, name: &[u8]) -> usize {
        let name = String::from_utf8_lossy(name);
        if let Some(number) = self.by_name.get(&*name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.clone().into_owned());
        self.by_name.insert(name.into_owned(), number);
        number
    }

    /// Returns the category of the packet's event; of an end, that of the slice that it ends.
    fn category_of(&mut self, about: &About<'_>) -> Option<usize> {
        let event = Event::of(about.event?);
        let Some(track) = event.track.or_else(|| self.tracks.get(&about.sequence).copied()) else {
            return self.own_category(about, &event);
        };
        if event.kind == Some(EventType::SliceEnd) {
            let open = self.open.entry(track).or_default();
            let category = open.categories.pop();
            open.early += u64::from(category.is_none());
            if open.categories.is_empty() && open.early == 0 {
                self.open.remove(&track);
            }
            return category.flatten();
        }
        let category = self.own_category(about, &event);
        if event.kind == Some(EventType::SliceBegin) {
            let open = self.open.entry(track).or_default();
            if open.early > 0 {
                open.early -= 1;
            } else {
                open.categories.push(category);
            }
        }
        category
    }

    /// The same for a packet that is carried: its slice is among the open ones.
    fn category_of_carried(&mut self, about: &About<'_>) -> Option<usize> {
        let event = Event::of(about.event?);
        self.own_category(about, &event)
    }

    /// Returns the number of the event's category, or of its categories with commas between them.
    fn own_category(&mut self, about: &About<'_>, event: &Event<'_>) -> Option<usize> {
        if event.kind == Some(EventType::Counter) {
            return self.counters.get(&event.track?).copied();
        }
        let interned = |iid: &u64| self.interned.get(&(about.sequence, *iid)).copied();
        match (&*event.iids, &*event.names) {
            ([], []) => Some(self.numbered(b"")),
            // What the recorder says of itself is for all.
            ([], [b"hairline"]) if about.sequence == OWN_SEQUENCE => None,
            ([iid], []) => interned(iid),
            ([], [name]) => Some(self.numbered(name)),
            (iids, names) => {
                let interned = iids.iter().filter_map(interned).filter_map(|number| self.names.get(number));
                let mut all: Vec<Vec<u8>> = interned.map(|name| name.clone().into_bytes()).collect();
                all.extend(names.iter().map(|name| name.to_vec()));
                Some(self.numbered(&all.join(&b',')))
            }
        }
    }
}

/// The fields of an event that say who wants it.
#[derive(Debug, Default)]
struct Event<'p> {
    kind: Option<EventType>,
    track: Option<u64>,
    names: Vec<&'p [u8]>,
    iids: Vec<u64>,
}

impl<'p> Event<'p> {
    fn of(event: &'p [u8]) -> Self {
        let mut of = Self::default();
        for field in fields(event) {
            match field {
                (track_event::TYPE, FieldValue::Varint(v)) => of.kind = EventType::from_number(v),
                (track_event::TRACK_UUID, FieldValue::Varint(v)) => of.track = Some(v),
                (track_event::CATEGORY_IIDS, FieldValue::Varint(v)) => of.iids.push(v),
                (track_event::CATEGORIES, FieldValue::Bytes { bytes, .. }) => of.names.push(bytes),
                _ => {}
            }
        }
        of
    }
}

/// A packet, as far as the output must know it.
#[derive(Debug)]
struct About<'p> {
    packet: &'p [u8],
    sequence: SequenceId,
    /// The place of the field with the sequence's number.
    place: Range<usize>,
    event: Option<&'p [u8]>,
    interned: Option<&'p [u8]>,
    /// The description of a track.
    track: Option<&'p [u8]>,
    /// The defaults of the sequence.
    defaults: Option<&'p [u8]>,
    /// The time since the packet before it, if it has no clock of its own.
    delta: Option<u64>,
    is_cleared: bool,
    /// Whether it relies on earlier packets of its sequence.
    needs_state: bool,
    /// Whether later packets rely on it.
    has_state: bool,
    /// Whether only the service writes such packets.
    is_of_service: bool,
}

impl<'p> About<'p> {
    fn of(packet: &'p [u8]) -> Self {
        use FieldValue::{Bytes, Varint};
        let mut about = Self {
            packet,
            sequence: SequenceId(0),
            place: 0..0,
            event: None,
            interned: None,
            track: None,
            defaults: None,
            delta: None,
            is_cleared: false,
            needs_state: false,
            has_state: false,
            is_of_service: false,
        };
        let (mut time, mut has_clock, mut has_clocks) = (None, false, false);
        let mut is_after = false;
        for field in Fields::new(packet, 0).map_while(Result::ok) {
            if std::mem::take(&mut is_after) {
                about.place.end = field.offset as usize;
            }
            match (field.number, field.value) {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, Varint(v)) => {
                    about.sequence = SequenceId(v as u32);
                    about.place = field.offset as usize..packet.len();
                    is_after = true;
                }
                (trace_packet::TIMESTAMP, Varint(v)) => time = Some(v),
                (trace_packet::TIMESTAMP_CLOCK_ID, _) => has_clock = true,
                (trace_packet::SEQUENCE_FLAGS, Varint(v)) => {
                    about.is_cleared = v & u64::from(sequence_flags::CLEARED) != 0;
                    about.needs_state = v & u64::from(sequence_flags::NEEDS) != 0 && !about.is_cleared;
                }
                (trace_packet::TRACK_EVENT, Bytes { bytes, .. }) => about.event = Some(bytes),
                (trace_packet::INTERNED_DATA, Bytes { bytes, .. }) => {
                    about.interned = Some(bytes);
                    about.has_state = true;
                }
                (trace_packet::CLOCK_SNAPSHOT, _) => has_clocks = true,
                (number, _) if OF_SERVICE.contains(&number) => about.is_of_service = true,
                (trace_packet::TRACK_DESCRIPTOR, Bytes { bytes, .. }) => {
                    about.track = Some(bytes);
                    about.has_state = true;
                }
                (trace_packet::TRACE_PACKET_DEFAULTS, Bytes { bytes, .. }) => {
                    about.defaults = Some(bytes);
                    about.has_state = true;
                }
                // The service's own source of processes names the parent. An importer takes one without a
                // parent for another process, whose number was used again.
                (trace_packet::PROCESS_TREE, Bytes { bytes, .. }) => {
                    let mut parts = fields(bytes);
                    about.is_of_service |= parts.any(|(number, _)| number == process_tree::PROCESSES);
                }
                _ => {}
            }
        }
        // The drain thread's own times are absolute.
        about.delta = time.filter(|_| !has_clock && about.sequence != OWN_SEQUENCE);
        about.has_state |= about.is_cleared || about.event.is_none();
        // The clocks of the machine are in the service's own packets.
        about.is_of_service |= has_clocks && about.sequence == OWN_SEQUENCE;
        about
    }

    /// Writes the packet as a producer does: without the number of its sequence, and `behind` ns later.
    fn put(&self, out: &mut Vec<u8>, behind: u64, with_event: bool) {
        if with_event && (behind == 0 || self.delta.is_none()) {
            out.extend_from_slice(self.packet.get(..self.place.start).unwrap_or_default());
            out.extend_from_slice(self.packet.get(self.place.end..).unwrap_or_default());
            return;
        }
        for field in Fields::new(self.packet, 0).map_while(Result::ok) {
            match (field.number, field.value) {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, _) => {}
                (trace_packet::TRACK_EVENT, _) if !with_event => {}
                (trace_packet::TIMESTAMP, FieldValue::Varint(delta))
                    if behind > 0 && self.delta.is_some() =>
                {
                    put_uint(out, trace_packet::TIMESTAMP, delta.wrapping_add(behind));
                }
                _ => put_field(out, &field),
            }
        }
    }
}

/// Returns the track of events that name none, from the defaults of a sequence.
fn default_track(defaults: &[u8]) -> Option<u64> {
    let of_events = fields(defaults).find_map(|field| match field {
        (trace_packet_defaults::TRACK_EVENT_DEFAULTS, FieldValue::Bytes { bytes, .. }) => Some(bytes),
        _ => None,
    });
    fields(of_events?).find_map(|field| match field {
        (track_event_defaults::TRACK_UUID, FieldValue::Varint(track)) => Some(track),
        _ => None,
    })
}

/// Returns the track and the categories of a counter, from the description of its track.
fn counter_of(track: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (mut uuid, mut categories) = (None, Vec::new());
    for field in fields(track) {
        match field {
            (track_descriptor::UUID, FieldValue::Varint(v)) => uuid = Some(v),
            (track_descriptor::COUNTER, FieldValue::Bytes { bytes, .. }) => {
                categories.extend(fields(bytes).filter_map(|field| match field {
                    (counter_descriptor::CATEGORIES, FieldValue::Bytes { bytes, .. }) => Some(bytes),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    uuid.zip((!categories.is_empty()).then(|| categories.join(&b',')))
}

/// The contents of whole packets.
fn packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(bytes).filter_map(|field| match field {
        (trace::PACKET, FieldValue::Bytes { bytes, .. }) => Some(bytes),
        _ => None,
    })
}

/// The content of one packet.
fn whole(packet: &[u8]) -> &[u8] {
    packets(packet).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_does_not_come_back_to_a_buffer_after_another_one() {
        let mut numbers = WriterNumbers { last: MOST_WRITERS, free: VecDeque::new() };
        let free = |id, buffers: &[u16]| FreeNumber { id, next: 9, buffers: buffers.to_vec() };
        assert!(numbers.next(1).is_none());
        numbers.free.extend([free(5, &[1, 2]), free(6, &[2]), free(7, &[1])]);
        let mut next = |buffer| numbers.next(buffer).map(|of| (of.id, of.next));
        assert_eq!(next(1), Some((6, 9)), "never had by this buffer");
        assert_eq!(next(1), Some((7, 9)), "had by this buffer last");
        assert_eq!(next(1), None, "there would be a hole");
        assert_eq!(next(2), Some((5, 9)));
    }

    #[test]
    fn an_event_that_is_left_out_leaves_its_time_and_its_state() {
        let mut packet = Vec::new();
        put_uint(&mut packet, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 7);
        put_uint(&mut packet, trace_packet::TIMESTAMP, 100);
        put_uint(&mut packet, trace_packet::SEQUENCE_FLAGS, 2);
        hairline_formats::proto::put_bytes(&mut packet, trace_packet::TRACK_EVENT, &[72, 1]);
        let about = About::of(&packet);
        assert_eq!((about.sequence, about.delta, about.needs_state), (SequenceId(7), Some(100), true));
        let (mut whole, mut later) = (Vec::new(), Vec::new());
        about.put(&mut whole, 0, true);
        assert_eq!(whole, packet[2..], "without the number of its sequence");
        about.put(&mut later, 28, false);
        assert_eq!(later, [64, 128, 1, 104, 2]);
    }
}
