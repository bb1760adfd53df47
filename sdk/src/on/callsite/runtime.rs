//! Callsites that are created at run time and exist for the rest of the process.

use crate::on::callsite::{Callsite, FirstHit, Key};
use crate::site::{CallsiteKind, Site};
use crate::vocabulary::Level;

/// The memory of a callsite, allocated before the lock is taken. Only under the lock can the caller see
/// whether another thread has created the same callsite. The memory is then freed, outside of the lock.
#[derive(Debug)]
pub(crate) struct CallsiteMemory {
    category: Option<Box<str>>,
    name: Option<Box<str>>,
    keys: Box<[Key]>,
    level: Level,
    #[cfg(feature = "subscriber")]
    flow_key: Option<&'static str>,
    site: Box<Option<Site>>,
    callsite: Box<Option<Callsite>>,
}

impl CallsiteMemory {
    /// Allocates the memory of a callsite with these keys.
    pub(crate) fn new(keys: Box<[Key]>) -> Self {
        let (site, callsite) = (Box::new(None), Box::new(None));
        Self {
            category: None,
            name: None,
            keys,
            level: Level::Fatal,
            #[cfg(feature = "subscriber")]
            flow_key: None,
            site,
            callsite,
        }
    }

    /// Sets the level of the callsite's events, for events of `tracing`.
    #[cfg(feature = "subscriber")]
    pub(crate) fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Sets the key whose value names a flow, for callsites of `tracing`.
    #[cfg(feature = "subscriber")]
    pub(crate) fn with_flow_in(self, key: &'static str) -> Self {
        Self { flow_key: Some(key), ..self }
    }

    /// Copies the category, for a category that is not static.
    #[cfg(any(feature = "log", feature = "subscriber"))]
    pub(crate) fn with_category(self, category: &str) -> Self {
        Self { category: Some(Box::from(category)), ..self }
    }

    /// Copies the name, for a name that is not static.
    #[cfg(any(feature = "log", feature = "metrics", feature = "subscriber"))]
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: Some(Box::from(name)), ..self }
    }

    /// Creates the callsite in this memory, without an allocation. `category` and `name` are ignored if the
    /// memory has a copy of them.
    pub(crate) fn fill(
        self,
        kind: CallsiteKind,
        category: &'static str,
        name: &'static str,
        site: Site,
        first_hit: FirstHit,
    ) -> &'static Callsite {
        let category = self.category.map_or(category, |category| Box::leak(category));
        let name = self.name.map_or(name, |name| Box::leak(name));
        let site = Box::leak(self.site).insert(site);
        let keys = Box::leak(self.keys);
        let callsite = Callsite::with_first_hit(kind, category, name, keys, site, first_hit);
        let callsite = callsite.with_level(self.level).permanent();
        #[cfg(feature = "subscriber")]
        let callsite = match self.flow_key {
            Some(key) => callsite.with_flow_in(key),
            None => callsite,
        };
        Box::leak(self.callsite).insert(callsite)
    }
}
