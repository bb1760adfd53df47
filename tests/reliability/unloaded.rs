//! A plugin with callsites of the program's own Hairline, which both have from one dynamic library of Rust.
//! It is unloaded while a session records.

use std::path::{Path, PathBuf};
use std::process::Command;

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

const WORKSPACE: &str = r#"[workspace]
members = ["shared", "plugin", "host"]
resolver = "3"
"#;

/// The manifest of a package that depends on `path`.
fn manifest(name: &str, library: &str, dependency: &str, path: &Path) -> String {
    let path = path.display();
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n{library}\n\
         [dependencies]\n{dependency} = {{ path = \"{path}\" }}\n"
    )
}

const PLUGIN: &str = r#"
use shared::hairline;

#[unsafe(no_mangle)]
pub extern "C" fn work() {
    for n in 0..10 {
        hairline::trace_scope!("plugin,several", "of the plugin", n);
        hairline::trace_instant!("plugin", "a moment of the plugin");
    }
}
"#;

/// Loads and unloads the plugin again and again. After each time, it forks, changes the filter, records
/// itself, and every second time it starts another session.
const HOST: &str = r#"
use std::ffi::{CString, c_char, c_int, c_void};
use shared::hairline;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}
const NOW: c_int = 2;
const NOLOAD: c_int = 4;

fn start(path: &str) -> hairline::Session {
    hairline::Session::builder().output(path).start().expect("a session")
}

fn main() {
    let [plugin, first, second] = [1, 2, 3].map(|n| std::env::args().nth(n).expect("an argument"));
    let plugin = CString::new(plugin).expect("a path");
    let mut session = start(&first);
    for round in 0..4 {
        unsafe {
            let library = dlopen(plugin.as_ptr(), NOW);
            assert!(!library.is_null(), "it is loaded");
            let work: extern "C" fn() = std::mem::transmute(dlsym(library, c"work".as_ptr()));
            work();
            std::thread::spawn(move || work()).join().expect("no panic");
            assert_eq!(dlclose(library), 0);
            assert!(dlopen(plugin.as_ptr(), NOW | NOLOAD).is_null(), "it is unloaded");
            let child = fork();
            if child == 0 {
                hairline::trace_scope!("host", "of the child");
                _exit(0);
            }
            let mut status = -1;
            assert_eq!(waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0, "the child lives without the plugin");
        }
        session.set_categories("*").expect("a filter");
        hairline::trace_scope!("host", "of the host", round);
        if round == 1 {
            session.stop().expect("no error");
            session = start(&second);
        }
    }
    session.stop().expect("no error");
}
"#;

/// Builds the program and its plugin, in a folder that the next run of the tests finds again. Returns the
/// folder with both.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unloaded");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("sdk");
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let shared = folder.join("shared");
    write("Cargo.toml", WORKSPACE);
    write("shared/Cargo.toml", &manifest("shared", "[lib]\ncrate-type = [\"dylib\"]", "hairline", &sdk));
    write("shared/src/lib.rs", "pub use hairline;\n");
    write("plugin/Cargo.toml", &manifest("plugin", "[lib]\ncrate-type = [\"cdylib\"]", "shared", &shared));
    write("plugin/src/lib.rs", PLUGIN);
    write("host/Cargo.toml", &manifest("host", "", "shared", &shared));
    write("host/src/main.rs", HOST);
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir", "target"])
        .env("RUSTFLAGS", "-C prefer-dynamic")
        .current_dir(&folder)
        .output()
        .expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    folder.join("target/debug")
}

#[test]
fn a_plugin_of_a_shared_library_may_be_unloaded_while_a_session_records_its_callsites() {
    let built = build();
    let rust = Command::new("rustc").args(["--print", "target-libdir"]).output().expect("rustc").stdout;
    let rust = String::from_utf8(rust).expect("a path");
    let libraries =
        std::env::join_paths([Path::new(rust.trim()), &built, &built.join("deps")]).expect("paths");
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let traces =
            ["first", "second"].map(|name| folder.path().join(name).with_extension(extension(format)));
        let run = Command::new(built.join("host"))
            .arg(built.join("libplugin.so"))
            .args(&traces)
            .env("LD_LIBRARY_PATH", &libraries)
            .env_remove("HAIRLINE")
            .output()
            .expect("it starts");
        assert!(run.status.success(), "{format:?}: {run:?}");
        for trace in traces {
            let sql = "select category, name, count(*) from slice group by name order by name";
            let verdict = judge::load(&trace, &[sql]);
            verdict.require_clean();
            assert_eq!(
                verdict.results[0].text(),
                "plugin\ta moment of the plugin\t40\nhost\tof the host\t2\nplugin,several\tof the plugin\t40",
                "{format:?}"
            );
        }
    }
}
