#!/usr/bin/env python3
"""Checks that the files of each crate form layers, and that the crates do.

    ci/layers.py               fails on cycles between the files of a crate, and on what ci/layers.txt forbids
    ci/layers.py --list CRATE  prints the files of a crate (named by its folder), lowest first
    ci/layers.py --self-test

A file depends on the file that defines the item it names, through any number of re-exports. `mod x;` and
the re-export of a submodule's item are no dependency. Code under `#[cfg(test)]` is not read; macro bodies
are. Each crate is read twice, with all its features and with none, because of twins such as `on` and `off`.
The script knows names, not types, so it does not see method calls.
"""

import collections
import configparser
import pathlib
import re
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\s+|b?r(\#*)".*?"\1|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^'\n]+|\\'|[^\\'])'|'\w+
    |(\$crate\b|(?:r\#)?\w+|::|.)""",  # group 2: all but comments, spaces and literals
    re.X | re.S,
)
NAME = re.compile(r"\$crate$|[A-Za-z_]\w*$")
ITEMS = {"fn", "struct", "enum", "union", "trait", "type", "const", "static"}


class Module:
    """A module: the names in it, and the names that its code uses."""

    def __init__(self, file, parent, folder):
        self.file, self.parent, self.folder = file, parent, folder  # `folder`: that of its submodules
        self.root = parent.root if parent else self
        self.children, self.defined, self.imports, self.globs = {}, set(), collections.defaultdict(list), []
        self.paths = []  # and the name under which a path is re-exported, or `None`
        self.calls = set()  # of macros
        self.words = set()
        self.maybe_defined = set()  # the words in calls of macros that may define items


class Parser:
    """Reads the modules of a crate, from a root file on."""

    def __init__(self, root, features):
        self.features, self.macros, self.modules = features, {}, []
        self.file(Module(root, None, root.parent))

    def file(self, module):
        text = module.file.read_text(encoding="utf-8")
        outer = self.__dict__.get("tokens"), self.__dict__.get("at")
        self.tokens, self.at = [found[2] for found in TOKEN.finditer(text) if found[2]] + [""] * 4, 0
        self.modules.append(module)
        self.block(module, "items")
        self.tokens, self.at = outer

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def block(self, module, kind):
        """Reads to the closing bracket. Kinds: "items" of the module, a macro "call" among them, "code"."""
        before, public, off = "", False, False
        while (token := self.take()) not in ("", ")", "]", "}"):
            after = self.tokens[self.at : self.at + 2]
            if token == "#" and after[0] in ("[", "!"):
                off |= self.is_off()
            elif off:
                self.at, off = self.at - 1, False
                self.skip()
            elif token == "pub" and after[0] == "(" and after[1] in ("crate", "self", "super", "in"):
                self.at = self.tokens.index(")", self.at) + 1
            elif token == "use" and after[0] != "<":
                self.use(module, [], public)
            elif token == "mod" and after[1] in (";", "{"):
                self.submodule(module, self.take(), self.take() == "{")
            elif token == "macro_rules":
                module.defined.add(self.tokens[self.at + 1])
                self.macros[self.tokens[self.at + 1]] = module.file
                self.at += 3
                self.block(module, "code")
            elif token in ("(", "[", "{"):
                inner = "call" if before == "!" else "code"
                self.block(module, inner if kind == "items" else kind)
            elif NAME.match(token):
                self.name(module, token, kind, before)
            public = token == "pub"
            before = token

    def name(self, module, token, kind, before):
        path = [token]
        while self.tokens[self.at] == "::" and NAME.match(self.tokens[self.at + 1]):
            path.append(self.tokens[self.at + 1])
            self.at += 2
        after = self.tokens[self.at : self.at + 2]
        if kind == "items" and before in ITEMS | {"mut"}:
            module.defined.add(token)
        if len(path) > 1:
            module.paths.append((path, None))
        if after[0] == "!" and after[1] in ("(", "[", "{"):
            module.calls.add(path[-1])
        if before not in (".", "fn", "let", "mut") and after[0] != ":":
            module.words.update(path)
        if kind == "call":
            module.maybe_defined.update(path)

    def use(self, module, path, public):
        """Reads the tree of a `use`, or a branch of it."""
        while (token := self.take()) not in ("{", "*"):
            if token != "::":
                path = path + [token]
                if self.tokens[self.at] != "::":
                    break
        if token == "*":
            module.globs.append(path)
        elif token == "{":
            while self.tokens[self.at] != "}":
                self.use(module, path, public)
                self.at += self.tokens[self.at] == ","
            self.at += 1
        else:
            path = path[:-1] if path[-1] == "self" else path
            name = path[-1]
            if self.tokens[self.at] == "as":
                name, self.at = self.tokens[self.at + 1], self.at + 2
            module.imports[name].append(path)
            module.paths.append((path, name if public else None))

    def submodule(self, module, name, inline):
        folder = module.folder / name
        files = [module.file] if inline else [folder.with_suffix(".rs"), folder / "mod.rs"]
        module.children[name] = child = Module(next(filter(pathlib.Path.exists, files)), module, folder)
        if inline:
            self.modules.append(child)
            self.block(child, "items")
        else:
            self.file(child)

    def is_off(self):
        """Reads an attribute. Returns whether it is a `cfg` that never holds here."""
        self.at += 1 + (self.tokens[self.at] == "!")
        holds, depth = True, 1
        if self.tokens[self.at : self.at + 2] == ["cfg", "("]:
            self.at, depth = self.at + 2, 2
            holds = self.condition()
        while depth:
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(self.take(), 0)
        return holds is False

    def condition(self):
        """Reads a `cfg` condition. Returns its value, or `None` if that depends on the machine."""
        word = self.take()
        if self.tokens[self.at] == "(":
            values = []
            while self.take() != ")" and self.tokens[self.at] != ")":
                values.append(self.condition())
            if word == "not":
                return None if values[0] is None else not values[0]
            decisive = word == "any"
            return decisive if decisive in values else None if None in values else not decisive
        self.at += self.tokens[self.at] == "="  # its value is a literal, which is no token
        return {"feature": self.features, "test": False}.get(word)

    def skip(self):
        """Passes over an item, a statement, a field or a match arm."""
        depth, is_item = 0, False
        while token := self.take():
            is_item |= token in ITEMS | {"use", "mod", "impl", "let"}
            depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
            if depth < 0:
                self.at -= 1
                return
            goes_on = self.tokens[self.at] in (";", ",", ".", "?", "else")
            ends = {";": True, ",": not is_item, "}": not goes_on}
            if depth == 0 and ends.get(token):
                return


def find(module, name, macros, seen):
    """What a name means in a module: a set of modules and of pairs (defining file, name)."""
    if (module, name) in seen:
        return set()
    seen = seen | {(module, name)}
    found = {module.children[name]} if name in module.children else set()
    found |= {(module.file, name)} if name in module.defined else set()
    for path in module.imports.get(name, ()):
        # An item of another crate counts as one of the file that imports it from there.
        found |= resolve(module, path, macros, seen) or {(module.file, name)}
    for path in () if found else module.globs:
        for target in resolve(module, path, macros, seen):
            found |= find(target, name, macros, seen) if isinstance(target, Module) else set()
    if not found and module.parent is None and name in macros:
        return {(macros[name], name)}
    return found or ({(module.file, name)} if name in module.maybe_defined else set())


def resolve(module, path, macros, seen=frozenset()):
    """What a path means in a module, as `find` does."""
    starts = {"crate": module.root, "$crate": module.root, "self": module, "super": module.parent}
    here = {starts[path[0]]} if path[0] in starts else find(module, path[0], macros, seen)
    for name in path[1:]:
        modules = [target for target in here if isinstance(target, Module)]
        if not modules:
            break  # the rest of the path is about the item: a variant, an associated function
        if name in ("self", "super"):
            here = {target.parent if name == "super" else target for target in modules}
        else:
            here = set().union(*(find(target, name, macros, seen) for target in modules))
    return here


def add_arrows(module, macros, graph, wrong):
    """Adds to `graph` what one module depends on."""
    own = module.folder if module.parent else module.file.parent
    named = [(path, public, resolve(module, path, macros)) for path, public in module.paths]
    for path in module.globs:
        for target in resolve(module, path, macros):
            for word in module.words - {"crate", "self", "super"} if isinstance(target, Module) else ():
                named.append(([word], None, find(target, word, macros, frozenset())))
    for call in module.calls & macros.keys() - module.imports.keys():
        named.append(([call], None, {(macros[call], call)}))
    for path, public, targets in named:
        if not targets and path[0] in ("crate", "$crate", "self", "super"):
            wrong.append(f"{module.file}: cannot find `{'::'.join(path)}`")
        for file, name in (target for target in targets if isinstance(target, tuple)):
            only_face = public and public not in module.words and own in file.parents
            if file != module.file and not only_face:
                graph[module.file].setdefault(file, set()).add(name)


def read(source, wrong):
    """The files of a crate, and what each depends on: {file: {file: names}}."""
    graph = {}
    roots = [source / "lib.rs", source / "main.rs", *source.glob("bin/*.rs"), *source.glob("bin/*/main.rs")]
    for root in filter(pathlib.Path.exists, roots):
        for features in (True, False):
            parser = Parser(root, features)
            for module in parser.modules:
                graph.setdefault(module.file, {})
                add_arrows(module, parser.macros, graph, wrong)
    return graph


def below(graph, start):
    """All files on which one depends, directly or through others."""
    found, todo = set(), [start]
    while todo:
        new = graph[todo.pop()].keys() - found
        found |= new
        todo.extend(new)
    return found


def cycles(graph):
    deep = {file: below(graph, file) for file in graph}
    rings = {frozenset(other for other in deep[file] if file in deep[other]) for file in graph}
    for ring in sorted(filter(None, rings), key=sorted):
        ties = [
            f"    {file} -> {target}: {', '.join(sorted(graph[file][target]))}"
            for file in sorted(ring)
            for target in sorted(graph[file].keys() & ring)
        ]
        yield "\n".join([f"a cycle of {len(ring)} files:", *ties])


def layer_of(path, layers):
    """The number of a file's layer. Of the entries that hold the file, the longest counts."""
    entries = [(len(entry), number) for number, line in enumerate(layers) for entry in line.split()
               if path == entry or path.startswith(entry + "/")]
    return max(entries)[1] if entries else None


def upward(graph, source, layers):
    """The arrows that run up in the layers, and the files without a layer."""
    number = {file: layer_of(file.relative_to(source).as_posix(), layers) for file in graph}
    for file in sorted(graph):
        if number[file] is None:
            yield f"{file}: has no layer in ci/layers.txt"
            continue
        for target, names in graph[file].items():
            if number[target] is not None and number[file] < number[target]:
                yield f"{file} (`{layers[number[file]]}`) is below {target}: {', '.join(sorted(names))}"
    for entry in " ".join(layers).split():
        if not (source / entry).exists():
            yield f"ci/layers.txt: {source / entry} is not there"


def between(root, allowed, json):
    """The arrows between crates that are not allowed, by their manifests."""
    for path in root.glob("*/Cargo.toml"):
        if path.parent.name not in allowed:
            yield f"{path}: is not in ci/layers.txt"
    manifests = {crate: tomllib.loads((root / crate / "Cargo.toml").read_text()) for crate in allowed}
    crate_of = {manifest["package"]["name"]: crate for crate, manifest in manifests.items()}
    for crate, manifest in manifests.items():
        for name, how in manifest.get("dependencies", {}).items():
            if name in crate_of and crate_of[name] not in allowed[crate].split() and allowed[crate] != "*":
                yield f"{crate}/Cargo.toml: may not depend on {name}"
            if crate_of.get(name) == "formats" and "json" in how.get("features", ()) and crate not in json:
                yield f"{crate}/Cargo.toml: may not turn on the feature `json` of {name}"


def check(root):
    rules = configparser.ConfigParser(allow_no_value=True, delimiters=(":",), comment_prefixes=("#",))
    rules.optionxform = str
    rules.read(root / "ci" / "layers.txt")
    allowed = dict(rules["crates"])
    json = allowed.pop("json of formats", "").split()
    wrong = list(between(root, allowed, json))
    for crate in allowed:
        source = root / crate / "src"
        graph = read(source, wrong)
        wrong += cycles(graph)
        if crate in rules:
            wrong += upward(graph, source, list(rules[crate]))
    return [line.replace(f"{root}/", "") for line in dict.fromkeys(wrong)]


def show(source):
    """Prints each file of a crate after those it depends on: their number, its name, its first line."""
    graph = read(source, [])
    deep = {file: len(below(graph, file) - {file}) for file in graph}
    for file in sorted(graph, key=lambda file: (deep[file], file)):
        first = re.search(r"^//! (.*)", file.read_text(encoding="utf-8"), re.M)
        print(f"{deep[file]:4} {file.relative_to(source).as_posix():34} {first[1] if first else ''}")


def self_test():
    layers = "[house]\nlow.rs\nhigh\nlib.rs\n"
    high = {"high/mod.rs": "pub(crate) fn g() {}", "lib.rs": "mod low; mod high;"}
    faces = {"lib.rs": "mod a; pub use a::{One, two::*};",
             "a/mod.rs": "mod one; pub mod two; pub(crate) use one::One;",
             "a/one.rs": "pub struct One;", "a/two.rs": "use super::One; pub fn make() -> One { One }"}
    cases = [
        ("", {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B; pub struct A;",
              "b.rs": "pub struct B(super::a::A);"}, "b.rs -> house/src/a.rs: A"),
        ("", faces, None),
        ("", faces | {"a/mod.rs": "mod one; pub mod two; pub use one::One; pub struct Own(One);",
                      "a/one.rs": "pub struct One(super::Own);"}, "one.rs -> house/src/a/mod.rs: Own"),
        (layers, high | {"low.rs": "use crate::high; fn f() { high::g() }"}, "below house/src/high/mod.rs"),
        (layers, high | {"low.rs": "macro_rules! m { () => { $crate::high::g() } }"}, "below house/src"),
        (layers, high | {"low.rs": "#[cfg(test)] mod tests { use crate::high::g; } // crate::high::g"}, None),
        (layers, high | {"low.rs": "#[cfg(test)] mod tests;", "low/tests.rs": "use crate::high::g;"}, None),
        (layers, high | {"low.rs": "use crate::middle::M;"}, "low.rs: cannot find `crate::middle::M`"),
    ]
    for layers, files, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            files = {f"house/src/{name}": text for name, text in files.items()}
            files["ci/layers.txt"] = f"[crates]\nhouse:\n{layers}"
            files["house/Cargo.toml"] = '[package]\nname = "house"\n'
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = "\n".join(check(pathlib.Path(folder)))
            assert expected in found if expected else not found, f"{files}\nexpected {expected}: {found}"
    print("ci/layers.py: its own tests pass")


if sys.argv[1:] == ["--self-test"]:
    self_test()
elif sys.argv[1:2] == ["--list"] and len(sys.argv) == 3:
    show(ROOT / sys.argv[2] / "src")
elif len(sys.argv) > 1:
    sys.exit(__doc__)
elif wrong := check(ROOT):
    sys.exit("\n".join(wrong) + f"\nci/layers.py: {len(wrong)} wrong")
