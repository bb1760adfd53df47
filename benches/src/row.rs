//! A line of the report.

use hairline::Format;
use serde_json::{Value, json};

use crate::timing::Samples;

/// The name of the format in the rows.
#[must_use]
pub fn label(format: Format) -> &'static str {
    if format == Format::Fxt { "FXT" } else { "TrackEvent" }
}

/// The rule by which a figure meets its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// The median is at most the floor's median times this.
    Ratio,
    /// The median is at most this many ns above the floor's median.
    Over,
    /// The median is at least the floor's median times this.
    AtLeastRatio,
    /// The figure itself is at most this.
    AtMost,
    /// The figure itself is at least this.
    AtLeast,
}

/// One figure with its floor and its budget.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the measured operation.
    pub name: String,
    /// Of one operation; or the figure itself in its own unit.
    pub min: f64,
    /// Of one operation; or the figure itself in its own unit.
    pub median: f64,
    /// The median of the floor; 0 without a floor.
    pub floor: f64,
    /// The budget.
    pub budget: f64,
    /// The rule of the budget.
    pub kind: Budget,
    /// The unit of the figures.
    pub unit: &'static str,
}

impl Row {
    /// A single figure.
    #[must_use]
    pub fn figure(name: &str, unit: &'static str, min: f64, median: f64, kind: Budget, budget: f64) -> Self {
        Self { name: name.to_owned(), min, median, floor: 0.0, budget, kind, unit }
    }

    /// Samples without a floor.
    #[must_use]
    pub fn sampled(name: &str, unit: &'static str, samples: &Samples, kind: Budget, budget: f64) -> Self {
        Self::figure(name, unit, samples.min(), samples.median(), kind, budget)
    }

    /// Samples beside their floor.
    #[must_use]
    pub fn beside(self, floor: &Samples) -> Self {
        Self { floor: floor.median(), ..self }
    }

    /// The median divided by the floor's median; 0 without a floor.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.floor > 0.0 { self.median / self.floor } else { 0.0 }
    }

    /// The number that is compared with the budget.
    #[must_use]
    pub fn judged(&self) -> f64 {
        match self.kind {
            Budget::Ratio | Budget::AtLeastRatio => self.ratio(),
            Budget::Over => self.median - self.floor,
            Budget::AtMost | Budget::AtLeast => self.median,
        }
    }

    /// Whether the budget is met.
    #[must_use]
    pub fn within(&self) -> bool {
        match self.kind {
            Budget::AtLeast | Budget::AtLeastRatio => self.judged() >= self.budget,
            _ => self.judged() <= self.budget,
        }
    }

    /// The row as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let meant = match self.kind {
            Budget::Ratio => "ratio to the floor, at most",
            Budget::Over => "above the floor, at most",
            Budget::AtLeastRatio => "ratio to the floor, at least",
            Budget::AtMost => "at most",
            Budget::AtLeast => "at least",
        };
        json!({
            "name": self.name, "unit": self.unit, "ns_min": self.min, "ns_median": self.median,
            "floor_ns": self.floor,
            "ratio": self.ratio(), "budget": self.budget, "budget_is": meant, "judged": self.judged(),
            "within": self.within(),
        })
    }

    /// The column names of [`Row::line`].
    #[must_use]
    pub fn heading() -> String {
        format!(
            "| {:<62} | {:>8} | {:>8} | {:>8} | {:>7} | {:>22} | {:<3} |\n\
             |{:-<64}|{:->10}|{:->10}|{:->10}|{:->9}|{:->24}|{:-<5}|",
            "what", "min", "median", "floor", "ratio", "budget", "ok", "", ":", ":", ":", ":", ":", ""
        )
    }

    /// The row as a line of the table.
    #[must_use]
    pub fn line(&self) -> String {
        let budget = match self.kind {
            Budget::Ratio => format!("<= {} x floor", self.budget),
            Budget::AtLeastRatio => format!(">= {} x floor", self.budget),
            Budget::Over => format!("<= floor + {} {}", self.budget, self.unit),
            Budget::AtMost => format!("<= {} {}", self.budget, self.unit),
            Budget::AtLeast => format!(">= {} {}", self.budget, self.unit),
        };
        let some = |v: f64| if v > 0.0 { format!("{v:.2}") } else { String::new() };
        format!(
            "| {:<62} | {:>8.2} | {:>8.2} | {:>8} | {:>7} | {:>22} | {:<3} |",
            format!("{} ({})", self.name, self.unit),
            self.min,
            self.median,
            some(self.floor),
            some(self.ratio()),
            budget,
            if self.within() { "yes" } else { "NO" }
        )
    }
}
