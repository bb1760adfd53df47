//! The phase of an event and the scope of an instant: one letter each ("Phases" in the document).

/// Declares enums that a trace stores as one letter: `Item = letter, "its documentation";`
macro_rules! lettered {
    ($(
        $(#[$attribute:meta])*
        $name:ident { $($item:ident = $letter:literal, $doc:literal;)* }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $doc] $item,)*
            /// A letter that the document does not define.
            Other(char),
        }

        impl $name {
            /// All items that the document defines, in its order.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// Returns the item with this letter.
            #[must_use]
            pub const fn from_letter(letter: char) -> Self {
                match letter {
                    $($letter => Self::$item,)*
                    other => Self::Other(other),
                }
            }

            /// Returns the letter.
            #[must_use]
            pub const fn letter(self) -> char {
                match self {
                    $(Self::$item => $letter,)*
                    Self::Other(other) => other,
                }
            }
        }
    )*};
}

lettered! {
    /// The phase of an event, `ph`.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::Phase;
    ///
    /// assert_eq!((Phase::from_letter('X'), Phase::Complete.letter()), (Phase::Complete, 'X'));
    /// assert_eq!(Phase::from_letter('Z'), Phase::Other('Z'));
    /// ```
    Phase {
        Begin = 'B', "\"Duration Events\": the begin of a slice on a thread.";
        End = 'E', "\"Duration Events\": the end of the thread's innermost slice.";
        Complete = 'X', "\"Complete Events\": a whole slice, with its [`dur`](super::Event::dur).";
        Instant = 'i', "\"Instant Events\".";
        InstantOld = 'I', "The old letter of an instant event.";
        Counter = 'C', "\"Counter Events\": each argument is a series.";
        AsyncBegin = 'b', "\"Async Events\": the begin of a nestable interval.";
        AsyncInstant = 'n', "\"Async Events\": a moment in a nestable interval.";
        AsyncEnd = 'e', "\"Async Events\": the end of a nestable interval.";
        AsyncStart = 'S', "Deprecated: the begin of an interval.";
        AsyncStepInto = 'T', "Deprecated: the begin of a step in an interval.";
        AsyncStepPast = 'p', "Deprecated: the end of a step in an interval.";
        AsyncFinish = 'F', "Deprecated: the end of an interval.";
        FlowStart = 's', "\"Flow Events\": the begin.";
        FlowStep = 't', "\"Flow Events\": a step.";
        FlowEnd = 'f', "\"Flow Events\": the end.";
        Sample = 'P', "\"Sample Events\", deprecated.";
        ObjectCreated = 'N', "\"Object Events\": an object is created.";
        ObjectSnapshot = 'O', "\"Object Events\": the object's content, in the argument `snapshot`.";
        ObjectDeleted = 'D', "\"Object Events\": the object is deleted.";
        Metadata = 'M', "\"Metadata Events\": see [`Event::metadata`](super::Event::metadata).";
        MemoryDumpGlobal = 'V', "\"Memory Dump Events\" of the machine.";
        MemoryDumpProcess = 'v', "\"Memory Dump Events\" of a process.";
        Mark = 'R', "\"Mark Events\".";
        ClockSync = 'c', "\"Clock Sync Event\".";
        ContextEnter = '(', "\"Context Events\": the thread enters a context.";
        ContextLeave = ')', "\"Context Events\": the thread leaves the context.";
        LinkIds = '=', "\"Linking IDs\".";
    }

    /// The scope of an instant event, `s`. An event without one has the scope of its thread.
    InstantScope {
        Global = 'g', "The whole trace.";
        Process = 'p', "A process.";
        Thread = 't', "A thread.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_letter() {
        assert_eq!(Phase::ALL.len(), 28);
        for phase in Phase::ALL {
            assert_eq!(Phase::from_letter(phase.letter()), *phase);
        }
        assert_eq!(Phase::from_letter('Z'), Phase::Other('Z'));
        assert_eq!(Phase::Other('Z').letter(), 'Z');
    }
}
