//! A thread that looks up the functions of a heap profile, for files of an output in several that have ended.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hairline_stacks::{HeapMoment, HeapWriter};

use crate::on::base::platform::own_thread::{self, OwnThread};
use crate::on::base::this_thread;
use crate::on::session::rotation::Finished;

/// The files that may wait. The functions of the first one take the longest: later ones need few new ones.
const MOST_WAITING: usize = 16;

/// Files that have a dump, and the dump.
type Unnamed = (Vec<(Finished, HeapWriter)>, HeapMoment);

/// The thread, from the first file on.
#[derive(Debug, Default)]
pub(super) struct Naming(Option<(SyncSender<Unnamed>, OwnThread)>);

impl Naming {
    /// Adds the functions of a dump to the files that have it. Files stay without if too many others wait, or
    /// if the system starts no thread.
    pub(super) fn name(&mut self, files: Vec<(Finished, HeapWriter)>, dump: HeapMoment) {
        if self.0.is_none() {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let thread = own_thread::spawn(c"hairline-heap", move || add_functions(&receiver)).ok();
            self.0 = thread.map(|thread| (sender, thread));
        }
        if let Some((sender, _)) = &self.0 {
            let _ = sender.try_send((files, dump));
        }
    }

    /// Waits until all files have their functions.
    pub(super) fn join(self) {
        if let Some((sender, thread)) = self.0 {
            drop(sender);
            thread.join();
        }
    }
}

fn add_functions(receiver: &Receiver<Unnamed>) {
    let _busy = this_thread::busy(); // the profile does not have what this thread allocates
    for (files, dump) in receiver {
        for (file, mut writer) in files {
            file.add(&writer.functions(&dump));
        }
    }
}
