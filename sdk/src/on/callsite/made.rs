//! Callsites that are made at run time, and stay for the rest of the process.

use crate::on::callsite::{Callsite, FirstHit, Key, Kind, Site};

/// The memory of a callsite, allocated before the lock under which it turns out whether another thread has
/// made the same one. Where that is so it is freed, outside of the lock.
#[derive(Debug)]
pub(crate) struct Blank {
    category: Option<Box<str>>,
    keys: Box<[Key]>,
    site: Box<Option<Site>>,
    callsite: Box<Option<Callsite>>,
}

impl Blank {
    pub(crate) fn new(keys: Box<[Key]>) -> Self {
        Self { category: None, keys, site: Box::new(None), callsite: Box::new(None) }
    }

    /// With a copy of the category, for one that is not static.
    #[cfg(feature = "log")]
    pub(crate) fn with_category(category: &str) -> Self {
        Self { category: Some(Box::from(category)), ..Self::new(Box::default()) }
    }

    /// Makes the callsite, without an allocation. `category` counts where there is no copy.
    pub(crate) fn fill(
        self,
        kind: Kind,
        category: &'static str,
        name: &'static str,
        site: Site,
        first_hit: FirstHit,
    ) -> &'static Callsite {
        let category = self.category.map_or(category, |category| Box::leak(category));
        let site = Box::leak(self.site).insert(site);
        Box::leak(self.callsite).insert(Callsite::with_first_hit(
            kind,
            category,
            name,
            Box::leak(self.keys),
            site,
            first_hit,
        ))
    }
}
