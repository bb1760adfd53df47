//! A line of the report.

use hairline::Format;
use serde_json::{Value, json};

use crate::timing::Samples;

/// The format's name, as rows have it.
#[must_use]
pub fn label(format: Format) -> &'static str {
    if format == Format::Fxt { "FXT" } else { "TrackEvent" }
}

/// How a budget is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Median time at most so many times the floor's.
    Ratio,
    /// Median time at most so many ns above the floor's.
    Over,
    /// The figure itself at most so much.
    AtMost,
    /// The figure itself at least so much.
    AtLeast,
}

/// One figure with its floor and its budget.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// Of one operation; or the figure itself in its own unit.
    pub min: f64,
    /// Of one operation; or the figure itself in its own unit.
    pub median: f64,
    /// The floor's median; 0 where there is none.
    pub floor: f64,
    /// What the budget says.
    pub budget: f64,
    /// How it is meant.
    pub kind: Budget,
    /// Unit of the figures.
    pub unit: &'static str,
}

impl Row {
    /// A figure that stands for itself.
    #[must_use]
    pub fn figure(name: &str, unit: &'static str, min: f64, median: f64, kind: Budget, budget: f64) -> Self {
        Self { name: name.to_owned(), min, median, floor: 0.0, budget, kind, unit }
    }

    /// What was sampled, for itself.
    #[must_use]
    pub fn sampled(name: &str, unit: &'static str, samples: &Samples, kind: Budget, budget: f64) -> Self {
        Self::figure(name, unit, samples.min(), samples.median(), kind, budget)
    }

    /// What was sampled, beside its floor.
    #[must_use]
    pub fn beside(self, floor: &Samples) -> Self {
        Self { floor: floor.median(), ..self }
    }

    /// Median over the floor's median; 0 without a floor.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.floor > 0.0 { self.median / self.floor } else { 0.0 }
    }

    /// What is compared with the budget.
    #[must_use]
    pub fn judged(&self) -> f64 {
        match self.kind {
            Budget::Ratio => self.ratio(),
            Budget::Over => self.median - self.floor,
            Budget::AtMost | Budget::AtLeast => self.median,
        }
    }

    /// Whether the budget is met.
    #[must_use]
    pub fn within(&self) -> bool {
        match self.kind {
            Budget::AtLeast => self.judged() >= self.budget,
            _ => self.judged() <= self.budget,
        }
    }

    /// For machines.
    #[must_use]
    pub fn json(&self) -> Value {
        let meant = match self.kind {
            Budget::Ratio => "ratio to the floor, at most",
            Budget::Over => "above the floor, at most",
            Budget::AtMost => "at most",
            Budget::AtLeast => "at least",
        };
        json!({
            "name": self.name, "unit": self.unit, "ns_min": self.min, "ns_median": self.median, "floor_ns": self.floor,
            "ratio": self.ratio(), "budget": self.budget, "budget_is": meant, "judged": self.judged(),
            "within": self.within(),
        })
    }

    /// The column names of [`Row::line`].
    #[must_use]
    pub fn heading() -> String {
        format!(
            "| {:<62} | {:>8} | {:>8} | {:>8} | {:>7} | {:>22} | {:<3} |\n|{:-<64}|{:->10}|{:->10}|{:->10}|{:->9}|{:->24}|{:-<5}|",
            "what", "min", "median", "floor", "ratio", "budget", "ok", "", ":", ":", ":", ":", ":", ""
        )
    }

    /// For people.
    #[must_use]
    pub fn line(&self) -> String {
        let budget = match self.kind {
            Budget::Ratio => format!("<= {} x floor", self.budget),
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
