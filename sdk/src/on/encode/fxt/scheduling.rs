//! The states of threads, as context switches.

use hairline_formats::{Value, fxt};

use crate::on::encode::cut;
use crate::on::encode::scheduling::{Scheduling, shown};

/// Writes names and states. Of two names of a thread, readers show the later one in the file.
pub(crate) fn put(out: &mut Vec<u8>, of: &Scheduling<'_>) {
    for named in of.names {
        let process = (fxt::StringRef::Inline("process"), Value::Koid(u64::from(named.task.pid)));
        let name = fxt::StringRef::Inline(cut(shown(named)));
        fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, u64::from(named.task.tid), name, &[process]);
    }
    of.sides().for_each(|side| side.put_record(out));
}
