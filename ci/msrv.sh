#!/usr/bin/env bash
# The oldest Rust that Cargo.toml claims builds what a user depends on, with all features. Needs rustup.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rustup toolchain install "$rust" --profile minimal --no-self-update
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv cargo "+$rust" check --locked -p hairline -p hairline-cross --all-features
echo "ci/msrv.sh: builds with $rust"
