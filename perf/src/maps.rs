//! Maps and sets without random keys.
//!
//! The standard library asks the system for random numbers at a thread's first map, and panics if it gets
//! none. A sandbox may refuse them, and a thread with descriptors of its own lacks the file that would serve
//! instead.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A map without random keys.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A set without random keys.
pub type Set<K> = HashSet<K, BuildHasherDefault<DefaultHasher>>;
