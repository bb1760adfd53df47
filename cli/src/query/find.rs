//! Finds the programs that answer SQL: `hairline-query`, and engines that may be installed.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The program that `hairline query` starts.
const OWN: &str = "hairline-query";

/// Finds `hairline-query` beside this program, or in a folder of PATH.
pub(crate) fn own() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| in_folder(own.parent()?, OWN));
    beside.or_else(|| in_path(OWN))
}

/// Finds a program in a folder of PATH.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    in_folders(&env::var_os("PATH")?, program)
}

/// Finds a program in a list of folders. Passes over those that depend on the current folder: whoever can
/// write to a folder with traces in it must not choose what runs there.
fn in_folders(folders: &OsStr, program: &str) -> Option<PathBuf> {
    env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .find_map(|folder| in_folder(&folder, program))
}

fn in_folder(folder: &Path, program: &str) -> Option<PathBuf> {
    let path = folder.join(format!("{program}{}", env::consts::EXE_SUFFIX));
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_never_taken_from_the_current_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("engine{}", env::consts::EXE_SUFFIX);
        std::fs::write(folder.path().join(&name), "").expect("a program");
        let here = folder.path().strip_prefix("/").unwrap_or(folder.path());
        let up = "../".repeat(env::current_dir().expect("a folder").components().count());
        let relative = Path::new(&up).join(here);
        assert!(relative.join(&name).is_file(), "the relative path leads there");
        let all = |folders: &[&Path]| env::join_paths(folders).expect("a list");
        let found = in_folders(&all(&[&relative, Path::new(""), Path::new("."), folder.path()]), "engine");
        assert_eq!(found, Some(folder.path().join(name)));
        assert_eq!(in_folders(&all(&[&relative, Path::new("")]), "engine"), None);
        assert_eq!(in_folders(&all(&[folder.path()]), "another"), None);
    }
}
