//! The lowest levels of stacks: process and thread.

use clap::ValueEnum;
use hairline_convert::TrackId;

use crate::folded::step;
use crate::track_names::TrackNames;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Process and thread
    Thread,
    /// Process: all its threads together
    Process,
    /// Nothing: all processes and threads together. The life of a future and its polls both count
    All,
}

/// How processes and threads are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    WithIds,
    /// Of two runs, whose ids differ.
    WithoutIds,
}

/// The lowest levels of stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lowest {
    pub(super) by: By,
    pub(super) naming: Naming,
}

impl Lowest {
    /// The levels, the lowest first. Events of a process have no thread.
    pub(super) fn steps(
        self,
        names: &TrackNames,
        process: Option<TrackId>,
        thread: Option<String>,
    ) -> Vec<String> {
        let process = process.map_or_else(|| "(no process)".to_owned(), |process| self.name(names, process));
        match self.by {
            By::Thread => std::iter::once(process).chain(thread).collect(),
            By::Process => vec![process],
            By::All => Vec::new(),
        }
    }

    /// The name of a process, a thread or another track.
    pub(super) fn name(self, names: &TrackNames, track: TrackId) -> String {
        step(&match self.naming {
            Naming::WithIds => names.name(track),
            Naming::WithoutIds => names.name_without_id(track),
        })
    }

    /// The name of a thread without a track.
    pub(super) fn unknown_thread(self, tid: u64) -> String {
        match self.naming {
            Naming::WithIds => format!("thread {tid}"),
            Naming::WithoutIds => "thread".to_owned(),
        }
    }
}
