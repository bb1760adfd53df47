//! The open files of a session, which move to the session's own thread.
//!
//! A program may close all of its descriptors, as daemons and sandboxes do. Its next file then gets the
//! number of one that Hairline still uses. So the session's own thread has a table of open files of its own,
//! where the system has that (Linux 5.9). The program sees none of the session's files, can close none, and
//! has none of its own closed by Hairline. A forked child inherits none.
//!
//! Where that cannot be had, each use of the output checks that the descriptor still leads to it
//! ([`OutputFile`](crate::on::base::files::output_file::OutputFile)).

use crate::on::base::files::output_file;
use crate::on::base::platform;
use crate::on::session::descriptors;
use crate::on::session::shared::Shared;

/// The open files of a session that is about to begin.
#[derive(Clone, Debug)]
pub(crate) struct OwnFiles {
    numbers: Vec<i32>,
    /// False if the thread runs code of the program, which uses files of the process.
    can_move: bool,
}

impl OwnFiles {
    /// Of a session with this output.
    pub(crate) fn new(output: Option<i32>, has_code_of_program: bool) -> Self {
        let numbers = output.into_iter().chain(descriptors::all()).collect();
        Self { numbers, can_move: !has_code_of_program }
    }

    /// On the session's own thread: gives it a table with these files alone. Returns whether it has one.
    pub(crate) fn take(&self, shared: &Shared) -> bool {
        let has_moved = self.can_move && platform::own_files(&self.numbers);
        if has_moved {
            shared.scheduling.moved_here();
            shared.hardware.moved_here();
            shared.sampling.moved_here();
        }
        has_moved
    }

    /// On the thread that starts the session: closes the files in the table of the process.
    pub(crate) fn close_in_process(&self) {
        descriptors::are_not_inherited();
        output_file::is_not_inherited();
        self.numbers.iter().for_each(|number| platform::close(*number));
    }
}
