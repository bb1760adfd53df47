//! Who requests a session.

/// Who requests a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) enum Requester {
    /// The program, in its code.
    #[default]
    Program,
    /// The environment of the process.
    Environment,
    /// A command that has connected to the process.
    Command,
    /// Perfetto's tracing service.
    Service,
}

#[cfg_attr(not(feature = "enable"), allow(dead_code))]
impl Requester {
    /// Whether the settings are those of variables, and not of the program's code.
    pub(crate) fn has_variables(self) -> bool {
        self != Self::Program
    }

    /// Whether nobody reads the summary: then the process says on stderr what the summary's notes say.
    pub(crate) fn reads_stderr(self) -> bool {
        matches!(self, Self::Environment | Self::Service)
    }
}
