//! Programs that use the macros wrongly do not compile, and the compiler's message says what to write.
//! Programs that use them well compile, whatever else has a name in them.

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn misuse_does_not_compile_and_says_why() {
        let cases = trybuild::TestCases::new();
        cases.pass("pass/*.rs");
        cases.compile_fail("fail/*.rs");
    }

    /// The programs of `hostile/`, in every edition. What compiles with the feature `enable` compiles without,
    /// and what does not does not.
    #[test]
    fn macros_compile_among_any_names() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let project = here.ancestors().nth(2).unwrap();
        let folder = here.join("../../target/tests/hostile");
        let write = |path: &str, text: &str| {
            fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
            fs::write(folder.join(path), text).unwrap();
        };
        fs::create_dir_all(&folder).unwrap();
        fs::copy(project.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        write("Cargo.toml", "[workspace]\nmembers = ['*']\nexclude = ['target']\nresolver = '2'\n");
        for other in ["core", "alloc"] {
            write(
                &format!("{other}/Cargo.toml"),
                &format!("[package]\nname = '{other}'\nversion = '0.0.0'\n"),
            );
            write(&format!("{other}/src/lib.rs"), "pub fn business() {}\n");
        }
        let hairline = format!("hairline = {{ path = {:?}, default-features = false }}", project.join("sdk"));
        let others = "core = { path = '../core' }\nalloc = { path = '../alloc' }";
        for edition in ["2018", "2021", "2024"] {
            for (name, kind, others) in
                [("names", "[[bin]]", others), ("no_std", "[lib]", ""), ("generic", "[[bin]]", "")]
            {
                let mut manifest = format!("[package]\nname = '{name}{edition}'\nversion = '0.0.0'\n");
                writeln!(manifest, "edition = '{edition}'\n{kind}\nname = '{name}{edition}'").unwrap();
                writeln!(manifest, "path = {:?}", here.join("hostile").join(name).with_extension("rs"))
                    .unwrap();
                writeln!(manifest, "[dependencies]\n{hairline}\n{others}").unwrap();
                write(&format!("{name}{edition}/Cargo.toml"), &manifest);
            }
        }
        let check = |features: &str, package: &str| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["check", "--quiet", "--offline", "--features", features, "--package", package]);
            let out =
                cargo.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")).output().unwrap();
            (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
        };
        for features in ["", "hairline/enable"] {
            for packages in ["names*", "no_std*"] {
                let (compiles, messages) = check(features, packages);
                assert!(compiles, "{packages}, features: {features}\n{messages}");
            }
            let (_, messages) = check(features, "generic2024");
            assert_eq!(messages.matches("error[E0401]").count(), 3, "features: {features}\n{messages}");
        }
    }
}
