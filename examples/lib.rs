//! Programs traced with Hairline: see the files beside this one.
