#!/bin/sh
# Unpacks Perfetto's own tracing service beside this script (Debian unstable's package `perfetto`) with what it links
# to, for the tests of the producer. Nothing is installed. The packages come from the mirror that this machine uses.
#
#   tests/oracle/traced.sh       then: tests/oracle/traced/run traced | perfetto | traced_probes ...
set -eu
dir=$(cd "$(dirname "$0")" && pwd)/traced
[ -x "$dir/run" ] && exit 0
command -v apt-get >/dev/null || { echo "traced.sh: needs apt-get" >&2; exit 1; }
rm -rf "$dir"
apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$dir/root"
sources=$(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null || true)
# shellcheck disable=SC2086 # a list of files
uri=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' $sources | head -1)
# shellcheck disable=SC2086
key=$(sed -n 's/^Signed-By: *//p' $sources | head -1)
printf 'deb [%s] %s sid main\n' "${key:+signed-by=$key}" "$uri" | sed 's/\[\] //' >"$apt/sources.list"
set -- -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists" \
  -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
apt-get "$@" -qq update >&2
(cd "$dir" && apt-get "$@" -qq download perfetto libc6 libstdc++6 libgcc-s1 zlib1g >&2)
for package in "$dir"/*.deb; do dpkg -x "$package" "$dir/root"; done
loader=$(find "$dir/root" -name 'ld-linux*' | head -1)
libraries=$(find "$dir/root" -name '*.so*' -exec dirname {} \; | sort -u | paste -sd:)
rm -rf "$apt" "$dir"/*.deb
cat >"$dir/run.new" <<RUN
#!/bin/sh
program=\$1; shift
for folder in bin sbin; do
  [ -x "$dir/root/usr/\$folder/\$program" ] && exec "$loader" --library-path "$libraries" "$dir/root/usr/\$folder/\$program" "\$@"
done
echo "no \$program" >&2; exit 127
RUN
chmod +x "$dir/run.new"
mv "$dir/run.new" "$dir/run"
