//! Views that everybody wants. Their text is the same for each engine, but for the function for percentiles.

use crate::sql::engine::Engine;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The name.
    pub name: &'static str,
    /// A sentence for users.
    pub doc: &'static str,
    template: &'static str,
}

/// All views.
pub const ALL: [View; 3] = [
    View {
        name: "slowest",
        doc: "The hundred slices that took longest, and how long their threads ran and waited.",
        template: include_str!("slowest.sql"),
    },
    View {
        name: "by_name",
        doc: "For each category and name: count, total, self time, shortest, p50, p99 and longest.",
        template: include_str!("by_name.sql"),
    },
    View {
        name: "critical",
        doc: "In which slices inside them the hundred slowest outermost slices spent their time.",
        template: include_str!("critical.sql"),
    },
];

impl View {
    /// The query that is the view, for an engine.
    #[must_use]
    pub fn query(&self, engine: Engine) -> String {
        self.filled(|part| engine.percentile("duration", part))
    }

    /// The query that is the view, for SQLite with the function `percentile_cont`.
    #[must_use]
    pub fn sqlite(&self) -> String {
        self.filled(|part| format!("cast(round(percentile_cont(duration, {part})) as integer)"))
    }

    fn filled(&self, percentile: impl Fn(&str) -> String) -> String {
        let with_p50 = self.template.replace("{p50}", &percentile("0.5"));
        with_p50.replace("{p99}", &percentile("0.99")).trim_end().to_owned()
    }
}
