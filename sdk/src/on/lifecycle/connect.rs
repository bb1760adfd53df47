//! Connects the layers: gives the layers below the functions that they call of the layers above, and
//! registers the handlers of fork and exit.
//!
//! This happens before the first callsite is registered, and before the first session starts.

use crate::on::base::hooks;
use crate::on::base::hooks::Hooks;
use crate::on::lifecycle::{exit, fork};
use crate::on::thread::cold;

static HOOKS: Hooks = Hooks { thread_ends: cold::thread_ended, in_unhandled_child: fork::in_unhandled_child };

/// Connects the layers. Calls after the first one cost little.
pub(crate) fn connect() {
    hooks::set(&HOOKS);
    exit::install();
}
