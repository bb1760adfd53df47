//! The kernel's perf events, as [Hairline](https://docs.rs/hairline) uses them: context switches and samples
//! of user stacks, of this user's own threads, without root.
//!
//! ```text
//! own                  the threads of this process
//! wakings              who woke whom, where the kernel permits it
//! stops                which threads stop, by a signal or a debugger, where it does
//! counts               counters of the hardware
//! own_events           events of all its threads
//! threads              its threads, while none starts
//! tasks                the states of threads, from the records of all processors
//! maps                 maps without random keys
//! ring  event  held    memory that the kernel writes; a file descriptor for each event
//! attributes           the kind of an event
//! record               the bytes of a ring as typed records
//! sys                  the system calls, one file for each system
//! abi                  numbers and structures of linux/perf_event.h
//! ```
//!
//! An [`Event`] counts for one thread on one processor. An event that is inherited counts for the threads
//! that its thread starts later, too. The kernel writes the records of all events of a processor into one
//! [`Ring`]. A reader copies each record out of the ring and parses the copy. The parser trusts no length.
//!
//! ```
//! use hairline_perf::{Attributes, Event, Inherit, Record, Ring};
//!
//! let switches = Attributes::switches().inherit(Inherit::Threads);
//! let Ok(event) = Event::open(&switches, 0, Some(0)) else { return }; // this system does not permit it
//! let mut ring = Ring::new(event, 64 << 10, &switches).unwrap();
//! ring.read(|record, stamp| {
//!     if let Record::Switch { direction } = record {
//!         println!("{} ns: thread {} on processor {}: {direction:?}", stamp.time, stamp.tid, stamp.cpu);
//!     }
//! });
//! ```
//!
//! On other systems than Linux each [`Event::open`] returns an error of the kind
//! [`Unsupported`](std::io::ErrorKind::Unsupported).

mod abi;
mod attributes;
mod counts;
mod cpus;
mod event;
mod held;
mod maps;
mod own;
mod own_events;
mod record;
mod ring;
mod stops;
mod sys;
mod tasks;
mod threads;
mod wakings;

pub use attributes::{Attributes, Counter, Inherit, Layout};
pub use counts::Counts;
pub use cpus::online_cpus;
pub use event::{Event, Id, advice};
pub use held::Held;
pub use maps::{Map, Set};
pub use own::Switches;
pub use own_events::{OwnEvents, RING};
pub use record::{Direction, Mapping, Record, Stamp, Task, Words};
pub use ring::{Read, Ring};
pub use tasks::{Change, Named, State, Taken, Tasks, Waker, Waking};
pub use threads::not_all_threads;
