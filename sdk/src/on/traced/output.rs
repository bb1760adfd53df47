//! The output of a session that the tracing service records: its packets, for each instance of the data
//! source.
//!
//! A session records what any of its instances wants. Each packet goes to the instances that want its event,
//! there to the writer of its sequence. An instance that joins later begins as the next file of a rotation
//! does: with the state that packets rely on, and the begins of open slices ([`Carry`]).

use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hairline_formats::proto::put_bytes;
use hairline_formats::track_event::fields::{trace_packet, track_descriptor};
use hairline_formats::track_event::{Carry, SequenceId};

use crate::filter::Filter;
use crate::on::base::lock::Map;
use crate::on::base::platform::service::SharedMemory;
use crate::on::traced::changes::{Change, Changes};
use crate::on::traced::frames::{self, Method};
use crate::on::traced::link::{Link, PATIENCE};
use crate::on::traced::memory::{Memory, PAGES, Writer};
use crate::on::traced::numbers::{FreeNumber, WriterNumbers};
use crate::on::traced::packet::{About, packets, whole};
use crate::on::traced::sorting::Sorting;
use crate::on::traced::wanted::fields;

/// Complete pages after which the service is told.
const PAGES_OF_A_CALL: usize = PAGES / 16;

/// The first and the longest pause while the service frees no page.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

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
    /// The packet with the description of the process, once it has come. Each sequence begins with it: an
    /// importer shows no thread of a process that is not described, and a full buffer of the service keeps
    /// of some sequences nothing.
    process: Vec<u8>,
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
    sequences: Map<SequenceId, Sequence>,
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

/// To which instances a packet goes, of those that want its event.
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
            process: Vec::new(),
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
            sorting.ended(sequence);
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
                let sequences = Map::default();
                self.instances.push(Instance { id, buffer, filter, wants: Vec::new(), sequences });
                self.sort();
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
                    self.sort();
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
    fn sort(&mut self) {
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
    }

    /// Ends writers: their last chunks are complete, and their numbers are free again.
    fn end_writers(&mut self, ended: Vec<(u16, Sequence)>) -> io::Result<()> {
        let mut numbers = Vec::with_capacity(ended.len());
        for (buffer, Sequence { mut writer, buffers, .. }) in ended {
            self.done.extend(self.memory.complete(&mut writer).map(|page| (page, buffer)));
            numbers.push((buffer, FreeNumber { id: writer.id, next: writer.next_chunk(), buffers }));
        }
        self.tell()?;
        for (buffer, number) in numbers {
            self.link.call(Method::UnregisterTraceWriter, &frames::number(u64::from(number.id)), None)?;
            self.numbers.lock().unwrap_or_else(PoisonError::into_inner).give_back(number, buffer);
        }
        Ok(())
    }

    /// Writes a packet to the instances that want it.
    fn deliver(&mut self, packet: &[u8], to: To) -> io::Result<()> {
        let about = About::of(packet);
        if about.is_of_service {
            return Ok(());
        }
        if let Some(track) = about.track.filter(|track| is_process(track)) {
            self.process.clear();
            put_bytes(&mut self.process, trace_packet::TRACK_DESCRIPTOR, track);
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
            let process = std::mem::take(&mut self.process);
            let written = if process.is_empty() || about.track.is_some_and(is_process) {
                Ok(())
            } else {
                self.write_packet(place, about.sequence, &process)
            };
            self.process = process;
            written?;
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

/// Whether a description of a track is that of a process.
fn is_process(track: &[u8]) -> bool {
    fields(track).any(|(number, _)| number == track_descriptor::PROCESS)
}

impl Instance {
    /// Whether it wants events of a category, or of one of several.
    fn wants(&mut self, category: usize, sorting: &Sorting) -> bool {
        if let Some(Some(wants)) = self.wants.get(category) {
            return *wants;
        }
        let wants = sorting.name(category).split(',').any(|name| self.filter.matches(name));
        if self.wants.len() <= category {
            self.wants.resize(category + 1, None);
        }
        if let Some(place) = self.wants.get_mut(category) {
            *place = Some(wants);
        }
        wants
    }
}
