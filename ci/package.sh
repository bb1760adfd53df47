#!/usr/bin/env bash
# What is published, built and tested from the packages alone.
#
#   ci/package.sh [crates]  packages each crate, builds it from its package, and tests all of them in a folder of their own
#   ci/package.sh tool      the command with its completions and manual pages: target/hairline-VERSION-TARGET.tar.gz
#
# A package is compiled as its user compiles it: with the dependencies of this day, not those of Cargo.lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

# In the order of publication: each after those that it depends on.
CRATES=(hairline-formats hairline-shm hairline-perf hairline-sampler hairline-macros hairline-stacks hairline hairline-convert
  hairline-tables hairline-cli hairline-tokio)

crates() {
  # Builds each from its package, with the others from theirs.
  cargo package --allow-dirty $(printf -- '-p %s ' "${CRATES[@]}")
  cargo publish --dry-run --no-verify --allow-dirty $(printf -- '-p %s ' "${CRATES[@]}")
  alone "${CRATES[@]}"
}

# alone CRATE..: unpacks the packages into a folder of their own, and tests them there.
alone() {
  local folder crate
  folder=$target/packages/alone
  rm -rf "$folder"
  mkdir -p "$folder"
  {
    echo '[workspace]'
    echo 'resolver = "3"'
    printf 'members = ["%s-'"$version"'"]\n' "$(printf '%s\n' "$@" | paste -sd' ' | sed "s/ /-$version\", \"/g")"
    echo '[patch.crates-io]'
    for crate in "$@"; do echo "$crate = { path = \"$crate-$version\" }"; done
  } >"$folder/Cargo.toml"
  for crate in "$@"; do
    tar -xzf "$target/package/$crate-$version.crate" -C "$folder"
    for file in README.md LICENSE-MIT LICENSE-APACHE; do
      [ -s "$folder/$crate-$version/$file" ] || { echo "ci/package.sh: $crate has no $file"; exit 1; }
    done
    # The form for Cargo alone; the other one has no paths.
    rm "$folder/$crate-$version/Cargo.toml.orig"
  done
  (cd "$folder" && CARGO_TARGET_DIR=$target/packages cargo test --all-features)
}

tool() {
  local host name folder
  host=$(rustc -vV | sed -n 's/^host: //p')
  name=hairline-$version-$host
  folder=$target/$name
  cargo build --locked --profile tool -p hairline-cli
  rm -rf "$folder"
  mkdir -p "$folder"/bin "$folder"/share/man/man1 "$folder"/share/bash-completion/completions \
    "$folder"/share/zsh/site-functions "$folder"/share/fish/vendor_completions.d
  cp "$target/tool/hairline" "$folder/bin/"
  "$folder/bin/hairline" man "$folder/share/man/man1" 2>/dev/null
  "$folder/bin/hairline" completions bash >"$folder/share/bash-completion/completions/hairline"
  "$folder/bin/hairline" completions zsh >"$folder/share/zsh/site-functions/_hairline"
  "$folder/bin/hairline" completions fish >"$folder/share/fish/vendor_completions.d/hairline.fish"
  cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
  tar -C "$target" -czf "$folder.tar.gz" "$name"
  echo "$(stat -c %s "$folder/bin/hairline") bytes: bin/hairline; $(ls "$folder/share/man/man1" | wc -l) manual pages"
  echo "$folder.tar.gz"
}

case "${1:-crates}" in
  crates | tool) "${1:-crates}" ;;
  *)
    echo "ci/package.sh: crates or tool, not $1" >&2
    exit 1 ;;
esac
