//! What the fleet contains, counted while it is made.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::plan::Plan;

/// What the answers are compared with.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    pub(crate) slices: u64,
    /// Requests and failures of a service and a version.
    pub(crate) requests: BTreeMap<(&'static str, &'static str), (u64, u64)>,
    /// The ids of traces with a slice that was slow because it could not run.
    stalled: Vec<String>,
    /// The lost events of a trace, by its id.
    lost: BTreeMap<String, u64>,
    /// The number of flows for each number of processes.
    fan_out: BTreeMap<usize, u64>,
}

impl Truth {
    pub(crate) fn add(&mut self, plan: &Plan) {
        let name = format!("{:032x}", plan.uuid());
        if let Some((_, true)) = plan.slow_request() {
            self.stalled.push(name.clone());
        }
        if plan.lost() > 0 {
            self.lost.insert(name, plan.lost());
        }
        for helpers in (0..plan.requests).filter_map(|request| plan.helpers(request)).filter(|n| *n > 0) {
            *self.fan_out.entry(helpers + 1).or_default() += 1;
        }
    }

    pub(crate) fn as_json(&self) -> Value {
        let requests = self.requests.iter().map(|((service, version), (all, failed))| {
            json!({"service": service, "version": version, "requests": all, "failures": failed})
        });
        json!({
            "slices": self.slices, "requests": requests.collect::<Vec<_>>(), "stalled": self.stalled,
            "lost": self.lost, "fan_out": self.fan_out.iter().collect::<Vec<_>>(),
        })
    }
}
