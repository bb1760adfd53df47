//! A program with one of the set-ups that programs have of tracing-subscriber, for the tests of what
//! Hairline's layer changes in them.
//!
//! ```text
//! beside SET-UP with | without        with the layer, or with one that does nothing
//! beside SET-UP logger                and Hairline's logger, which is one too many
//! beside SET-UP session LEVEL         and a session of its own, which starts after the set-up
//! ```
//!
//! It logs a message of each level by `tracing` and by `log`. The output of `fmt` is on stdout, and after it
//! the levels of `log` and of `tracing` at the end.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Identity, Layer};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Registry, fmt, registry, reload};

/// Installs the set-up. `layer` makes the layer for any subscriber.
macro_rules! install {
    ($set_up:expr, $layer:expr) => {
        match $set_up {
            "fmt" => fmt().without_time().finish().with($layer).init(),
            "fmt-env" => fmt().without_time().with_env_filter(filter()).finish().with($layer).init(),
            "above" => registry().with(to_stdout()).with($layer).init(),
            "below" => registry().with($layer).with(to_stdout()).init(),
            "above-filtered" => {
                registry().with(to_stdout().with_filter(LevelFilter::INFO)).with($layer).init()
            }
            "below-filtered" => {
                registry().with($layer).with(to_stdout().with_filter(LevelFilter::INFO)).init()
            }
            "below-targets" => registry().with($layer).with(to_stdout().with_filter(filter())).init(),
            "global-first" => registry().with(filter()).with($layer).with(to_stdout()).init(),
            "global-last" => registry().with(to_stdout()).with($layer).with(filter()).init(),
            "boxed" => {
                let filtered = to_stdout().with_filter(LevelFilter::INFO).boxed();
                registry().with($layer.boxed()).with(filtered).init();
            }
            "optional" => registry().with(Some($layer)).with(to_stdout()).init(),
            "list" => registry().with(vec![$layer.boxed(), to_stdout().boxed()]).init(),
            "tree" => registry().with(to_stdout::<Registry>().and_then($layer)).init(),
            "tree-below" => registry().with(Layer::and_then($layer, to_stdout::<Registry>())).init(),
            "reloadable" => registry().with(reload::Layer::new($layer).0).with(to_stdout()).init(),
            "reloadable-tree" => {
                let layer = to_stdout::<Registry>().and_then(reload::Layer::new($layer).0);
                registry().with(layer).init();
            }
            "subscriber" => {
                tracing_log::LogTracer::init().expect("the first logger");
                tracing::subscriber::set_global_default(hairline::Subscriber::new()).expect("the first one");
            }
            "reloaded" => {
                let mut later = Some($layer);
                let own = later.take();
                let (layer, handle) = reload::Layer::new(later);
                registry().with(layer).with(to_stdout()).init();
                handle.reload(own).expect("the subscriber is there");
            }
            set_up => panic!("no set-up {set_up}"),
        }
    };
}

fn filter() -> EnvFilter {
    EnvFilter::new("info,noisy=trace")
}

fn to_stdout<S>() -> impl Layer<S> + Send + Sync
where
    S: tracing::Subscriber + for<'a> registry::LookupSpan<'a>,
{
    fmt::layer().without_time()
}

fn messages() {
    macro_rules! of {
        ($level:ident, $name:literal) => {
            tracing::event!(target: "app", tracing::Level::$level, $name);
            tracing::event!(target: "noisy", tracing::Level::$level, concat!("noisy ", $name));
            tracing::span!(target: "app", tracing::Level::$level, concat!("span ", $name)).in_scope(|| ());
        };
    }
    of!(TRACE, "trace");
    of!(DEBUG, "debug");
    of!(INFO, "info");
    of!(WARN, "warn");
    of!(ERROR, "error");
    for level in log::Level::iter() {
        log::log!(target: "dependency", level, "log {}", level.as_str().to_lowercase());
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let [set_up, way @ ..] = arguments.as_slice() else { panic!("beside SET-UP WAY") };
    match way {
        ["without"] => install!(*set_up, None::<Identity>),
        _ => install!(*set_up, hairline::layer()),
    }
    let session = match way {
        ["session", level] => {
            let level = if *level == "trace" { hairline::Level::Trace } else { hairline::Level::Info };
            let builder = hairline::Session::builder().output("own.pftrace").level(level);
            Some(builder.start().expect("a session"))
        }
        _ => None,
    };
    if let ["logger"] = way {
        assert!(hairline::Logger::new().install().is_err());
    }
    messages();
    drop(session);
    println!("levels: {} {}", log::max_level(), LevelFilter::current());
}
