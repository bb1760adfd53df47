#!/usr/bin/env bash
# Records programs of other people, asks the judge about the traces, and measures what recording costs
# (ci/programs/README.md). Not a part of ci/test.sh: it takes some minutes to build.
#
#   ci/programs.sh [--quick] [--only NAME] [--no-check] [--no-times] [--keep FOLDER]
#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/programs"

../../tests/oracle/setup.sh

# Cargo unpacks ripgrep's sources beside those of the other packages, such as `grep`. It does not name them
# itself, since a dependency without a library is none to it.
sources=$(cargo metadata --locked --format-version 1 --features ripgrep-traced/source \
  2> >(grep -v 'missing a lib target' >&2) | python3 -c '
import json, os, sys
packages = {package["name"]: package for package in json.load(sys.stdin)["packages"]}
folder = os.path.dirname(os.path.dirname(packages["grep"]["manifest_path"]))
print(os.path.join(folder, "ripgrep-" + packages["ripgrep-traced"]["version"]))')
for copy in plain traced peer; do
  rm -rf "ripgrep/$copy"
  cp -R "$sources" "ripgrep/$copy"
done
patch --quiet --strip=1 --directory=ripgrep/traced <ripgrep/hairline.patch
patch --quiet --strip=1 --directory=ripgrep/peer <ripgrep/peer.patch

cargo fmt --check -p quic-traced -p web-traced
target_of() {
  cargo metadata --locked --no-deps --format-version 1 "$@" | python3 -c '
import json, sys
print(json.load(sys.stdin)["target_directory"])'
}
target=$(target_of)
tool=$(target_of --manifest-path ../../Cargo.toml)/release/hairline
cargo build --release --locked
cargo build --release --locked --manifest-path ../../Cargo.toml -p hairline-cli
exec python3 check.py "$target/release" --tool "$tool" "$@"
