//! What the program is asked to do.

use std::collections::HashMap;
use std::sync::OnceLock;

/// How a child is made. The table in `main.rs` says what each does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fork,
    BareFork,
    Clone,
    Spawn,
    Exec,
    Handler,
    Returned,
    BareHandler,
}

pub(crate) const KINDS: [(Kind, &str); 8] = [
    (Kind::Fork, "fork"),
    (Kind::BareFork, "_fork"),
    (Kind::Clone, "clone"),
    (Kind::Spawn, "spawn"),
    (Kind::Exec, "exec"),
    (Kind::Handler, "handler"),
    (Kind::Returned, "returned"),
    (Kind::BareHandler, "_handler"),
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether the child may do only what a signal handler may.
    pub(crate) fn is_bare(self) -> bool {
        matches!(self, Self::BareFork | Self::Clone | Self::BareHandler)
    }
}

pub(crate) struct Orders {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) mode: String,
    pub(crate) template: String,
    pub(crate) extension: String,
    pub(crate) seed: u64,
    pub(crate) children: u64,
    pub(crate) threads: u64,
    pub(crate) forkers: u64,
    pub(crate) depth: u32,
    pub(crate) has_own_subscriber: bool,
}

static ORDERS: OnceLock<Orders> = OnceLock::new();

/// Reads the arguments. Call it once, first of all.
pub(crate) fn read() -> &'static Orders {
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let number = |name: &str| arguments[name].parse::<u64>().expect("a number");
    let kind = |name| KINDS.iter().find(|(_, known)| *known == name).expect("a kind").0;
    let template = arguments["template"].clone();
    ORDERS.get_or_init(|| Orders {
        kinds: arguments["kinds"].split(',').map(kind).collect(),
        mode: arguments["mode"].clone(),
        extension: template.rsplit('.').next().unwrap_or_default().to_owned(),
        template,
        seed: number("seed"),
        children: number("children"),
        threads: number("threads"),
        forkers: number("forkers"),
        depth: number("depth") as u32,
        has_own_subscriber: arguments["subscriber"] == "own",
    })
}

pub(crate) fn orders() -> &'static Orders {
    ORDERS.get().expect("set by main")
}
