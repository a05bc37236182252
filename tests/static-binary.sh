#!/usr/bin/env bash
# Builds the static binary with the flags of the Dockerfile, but unoptimised, and runs it in an empty root:
# what the image would do, without a container engine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'static-binary: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The flags come out of the Dockerfile itself, so that the two cannot part.
flags=$(sed -n 's/^ENV RUSTFLAGS="\(.*\)"$/\1/p' Dockerfile)
build=$(sed -n 's/^RUN \(cargo build .*\) \\$/\1/p' Dockerfile)
[ -n "$flags" ] && [ -n "$build" ] || die "the Dockerfile no longer has the lines that this test looks for."
say "${build/--release/--profile dev}"
RUSTFLAGS=$flags bash -c "${build/--release/--profile dev}"
binary=${CARGO_TARGET_DIR:-target}/$(rustc --print host-tuple)/debug/cascade-guard

# A binary that still asks for a dynamic loader would not start in the image.
if readelf --program-headers --wide "$binary" | grep -q INTERP; then
    die "$binary is not static."
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
install -m 0755 "$binary" "$root/cascade-guard"
mkdir "$root/dev" "$root/data"
cp -r tests/static-binary/. "$root/data"
: > "$root/dev/urandom"

# A mount namespace of our own, so that /dev/urandom, which every container has, needs no clean-up; as root or not.
user=()
[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
inside() {
    unshare "${user[@]}" --mount bash -c '
        mount --bind /dev/urandom "$1/dev/urandom" && root=$1 && shift && exec chroot "$root" /cascade-guard "$@"
    ' inside "$root" "$@"
}

inside --version >/dev/null || die "it does not start."
# Refused, which is exit code 1, because nobody has approved.
code=0
answer=$(inside review /data/review.json --snapshot /data/cluster.yaml --policy /data/policy.yaml) || code=$?
[ "$code" = 1 ] && [[ $answer == *'"allowed":false'* && $answer == *namespace-approval* ]] ||
    die "review ended with $code and said: $answer"
inside demo >/dev/null || die "demo failed."
say "$binary runs in an empty root."
