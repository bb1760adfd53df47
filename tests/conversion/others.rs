//! Traces of other people's tools, which `ci/others.sh` records into the folder that a variable names.

use std::path::PathBuf;

use crate::matrix::{Entry, in_all_formats};

#[test]
fn traces_of_other_peoples_tools_are_the_same_in_each_format() {
    let Some(folder) = std::env::var_os("OTHER_TRACES").map(PathBuf::from) else { return };
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    in_all_formats(&paths.iter().map(|path| Entry::of_other(path)).collect::<Vec<_>>());
}
