#!/usr/bin/env python3
"""Checks docs/vocabulary.md, and the tests that other documents name, against the sources.

Every test it names (`file.rs::test`, the file by the end of its path) is there; so is every function or type of
hairline_formats (`fxt::name`, `te::name`) and every macro (`name!`); every row has four cells, and every test of
tests/vocabulary/records is in some row. In the other documents of OTHERS each test that is named after its file
(`file.rs`: `test`, `test`) is there.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "vocabulary.md"
OTHERS = ["README.md", "docs/reliability.md", "docs/security.md"]
TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)")

sources = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for crate in ("tests", "formats", "macros", "sampler", "sdk", "shm", "stacks", "tool")
    for path in (ROOT / crate).rglob("*.rs")
}
tests = {path: set(TEST.findall(text)) for path, text in sources.items()}


def public(directory):
    """The names that the sources below a directory make public."""
    text = "".join(text for path, text in sources.items() if path.startswith(directory))
    return set(re.findall(r"pub (?:const )?(?:fn|struct|enum|trait) (\w+)", text)) | set(
        re.findall(r"^    (\w+) \{$", text, re.M)  # numbered! { ThreadState { ... } }
    )


modules = {"fxt": public("formats/src/fxt/"), "te": public("formats/src/track_event/")}
macros = set(re.findall(r"macro_rules! (\w+)", sources["sdk/src/on/macros/mod.rs"]))
wrong, rows, named = [], 0, set()
for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
    if not line.startswith("|") or line.startswith(("|---", "| What |")):
        continue
    rows += 1

    def complain(text):
        wrong.append(f"{PAGE.relative_to(ROOT)}:{number}: {text}")

    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if len(cells) != 4 or not all(cells):
        complain(f"{len(cells)} cells, or an empty one")
        continue
    for file, test in re.findall(r"`([\w/]+\.rs)::(\w+)`", line):
        paths = [path for path in sources if f"/{path}".endswith(f"/{file}") and test in tests[path]]
        if len(paths) == 1:
            named.add((paths[0], test))
        else:
            complain(f"{len(paths)} tests are {file}::{test}")
    if cells[2] != "-" and "::" not in cells[2]:
        complain("neither a test nor a dash")
    for module, name in re.findall(r"`(fxt|te)::(\w+)`", line):
        if name not in modules[module]:
            complain(f"hairline_formats has no {module}::{name}")
    for name in re.findall(r"`(\w+)!`", line):
        if name not in macros:
            complain(f"hairline has no macro {name}!")

for path in sorted(tests):
    if path.startswith("tests/vocabulary/records"):
        wrong += [f"{path}: {test} is in no row" for test in sorted(tests[path]) if (path, test) not in named]

elsewhere = 0
for page in OTHERS:
    text = (ROOT / page).read_text(encoding="utf-8")
    for file, list_of_tests in re.findall(r"`([\w/]+\.rs)`: (`\w+`(?:[^`|;]*, `\w+`|,? and `\w+`)*)", text):
        for test in re.findall(r"`(\w+)`", list_of_tests):
            elsewhere += 1
            if not any(f"/{path}".endswith(f"/{file}") and test in tests[path] for path in sources):
                wrong.append(f"{page}: no test is {file}: {test}")

if wrong:
    sys.exit("\n".join(wrong))
print(f"{PAGE.relative_to(ROOT)}: {rows} rows, {len(named)} tests, all there; {elsewhere} of other pages, too")
