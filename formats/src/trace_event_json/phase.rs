//! What an event is: one letter ("Phases" in the document).

/// An enum of one character, and the way back from it.
macro_rules! lettered {
    ($(#[$attribute:meta])* $name:ident { $($(#[$item_attribute:meta])* $item:ident = $letter:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$item_attribute])* $item,)*
            /// A letter that the document does not have.
            Other(char),
        }

        impl $name {
            /// All that the document has, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// What this letter stands for.
            #[must_use]
            pub const fn from_letter(letter: char) -> Self {
                match letter {
                    $($letter => Self::$item,)*
                    other => Self::Other(other),
                }
            }

            /// Its letter.
            #[must_use]
            pub const fn letter(self) -> char {
                match self {
                    $(Self::$item => $letter,)*
                    Self::Other(other) => other,
                }
            }
        }
    };
}

lettered! {
    /// The phase of an event, `ph`.
    Phase {
        /// "Duration Events": a slice of a thread begins.
        Begin = 'B',
        /// "Duration Events": the thread's innermost slice ends.
        End = 'E',
        /// "Complete Events": a slice and its [`dur`](crate::trace_event_json::Event::dur).
        Complete = 'X',
        /// "Instant Events".
        Instant = 'i',
        /// The old letter of an instant event.
        InstantOld = 'I',
        /// "Counter Events": each argument is a series.
        Counter = 'C',
        /// "Async Events": begin of a nestable interval.
        AsyncBegin = 'b',
        /// "Async Events": a moment of a nestable interval.
        AsyncInstant = 'n',
        /// "Async Events": end of a nestable interval.
        AsyncEnd = 'e',
        /// Deprecated: begin of an interval.
        AsyncStart = 'S',
        /// Deprecated: what goes on from here in an interval.
        AsyncStepInto = 'T',
        /// Deprecated: what went on up to here in an interval.
        AsyncStepPast = 'p',
        /// Deprecated: end of an interval.
        AsyncFinish = 'F',
        /// "Flow Events": begin.
        FlowStart = 's',
        /// "Flow Events": step.
        FlowStep = 't',
        /// "Flow Events": end.
        FlowEnd = 'f',
        /// "Sample Events", deprecated.
        Sample = 'P',
        /// "Object Events": an object is there.
        ObjectCreated = 'N',
        /// "Object Events": what it holds now, in the argument `snapshot`.
        ObjectSnapshot = 'O',
        /// "Object Events": it is gone.
        ObjectDeleted = 'D',
        /// "Metadata Events": see [`Event::metadata`](crate::trace_event_json::Event::metadata).
        Metadata = 'M',
        /// "Memory Dump Events" of the machine.
        MemoryDumpGlobal = 'V',
        /// "Memory Dump Events" of a process.
        MemoryDumpProcess = 'v',
        /// "Mark Events".
        Mark = 'R',
        /// "Clock Sync Event".
        ClockSync = 'c',
        /// "Context Events": the thread enters a context.
        ContextEnter = '(',
        /// "Context Events": it leaves it.
        ContextLeave = ')',
        /// "Linking IDs".
        LinkIds = '=',
    }
}

lettered! {
    /// How far an instant event reaches, `s`; a thread, where nothing is said.
    InstantScope {
        /// The whole trace.
        Global = 'g',
        /// A process.
        Process = 'p',
        /// A thread.
        Thread = 't',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_stands_for_one_phase() {
        assert_eq!(Phase::ALL.len(), 28);
        for phase in Phase::ALL {
            assert_eq!(Phase::from_letter(phase.letter()), *phase);
        }
        assert_eq!(Phase::from_letter('Z'), Phase::Other('Z'));
        assert_eq!(Phase::Other('Z').letter(), 'Z');
    }
}
