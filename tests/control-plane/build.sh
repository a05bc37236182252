#!/usr/bin/env bash
# Prints, as its only line on stdout, a folder that holds etcd, kube-apiserver
# and kube-controller-manager; builds them from source if need be. Everything
# else (progress, errors) goes to stderr, so a caller can take stdout as it is.
set -euo pipefail

# A CDPATH in the environment would make `cd` print, and go elsewhere.
unset CDPATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
programs=(etcd kube-apiserver kube-controller-manager)

say() { printf '%s\n' "control-plane: $*" >&2; }
die() { say "$*"; exit 1; }

# The first of our programs that is not in the folder $1; nothing if all are.
missing_in() {
    local name
    for name in "${programs[@]}"; do
        if [ ! -f "$1/$name" ] || [ ! -x "$1/$name" ]; then
            printf '%s\n' "$name"
            return
        fi
    done
}

# KUBEBUILDER_ASSETS is where other Kubernetes test suites look, so whoever set
# it has chosen which binaries to use: a hole in it is an error to report, not
# something to paper over with a build.
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    absent=$(missing_in "$KUBEBUILDER_ASSETS")
    [ -z "$absent" ] ||
        die "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no executable $absent; add it, or unset KUBEBUILDER_ASSETS to have all of them built."
    (cd "$KUBEBUILDER_ASSETS" && pwd -P)
    exit
fi

# Versions are read from the go.mod files, the one place where they are set,
# and without calling go: with the binaries built, no toolchain is needed.
version_of() { # MODULE GO_MOD
    awk -v module="$1" '
        $1 == "require" { $1 = ""; $0 = $0 }
        $1 == module && $2 ~ /^v[0-9]/ { print substr($2, 2); exit }
    ' "$2"
}
etcd_version=$(version_of go.etcd.io/etcd/server/v3 "$here/etcd/go.mod")
kubernetes_version=$(version_of k8s.io/kubernetes "$here/kubernetes/go.mod")
[ -n "$etcd_version" ] || die "no version of etcd in $here/etcd/go.mod."
[ -n "$kubernetes_version" ] || die "no version of Kubernetes in $here/kubernetes/go.mod."

# By the XDG specification a relative XDG_CACHE_HOME is to be ignored. System
# and processor are in the key because home folders are sometimes shared.
case ${XDG_CACHE_HOME:-} in
    /*) cache=$XDG_CACHE_HOME ;;
    *)
        [ -n "${HOME:-}" ] || die "set HOME or XDG_CACHE_HOME: there is no cache folder to build into."
        cache=$HOME/.cache
        ;;
esac
root=$cache/cascade-guard/control-plane
key=etcd-$etcd_version-kubernetes-$kubernetes_version-$(uname -sm | tr 'A-Z ' 'a-z-')
bin=$root/$key

if [ -z "$(missing_in "$bin")" ]; then
    printf '%s\n' "$bin"
    exit
fi

# go is asked from inside a module: where it is allowed to fetch a newer
# toolchain (GOTOOLCHAIN=auto), the one it would build with answers. Where it
# cannot read that module or fetch that toolchain, it still knows its own name.
need=$(awk '$1 == "go" { print $2 }' "$here/etcd/go.mod" "$here/kubernetes/go.mod" | sort -V | tail -n 1)
building="building etcd and Kubernetes needs Go $need or newer, and"
advice="install it (on Debian, what \`apt-get install golang\` gives may be too old: then take the Go project's own release)"
command -v go >/dev/null || die "$building there is no go on PATH: $advice."
have=$( (cd "$here/kubernetes" && go env GOVERSION || GOTOOLCHAIN=local go version) 2>/dev/null |
    sed -n 's/.*go\([0-9][0-9]*\.[0-9][0-9a-z.]*\).*/\1/p') || have=
[ "$(printf '%s\n' "$need" "${have:-0}" | sort -V | head -n 1)" = "$need" ] ||
    die "$building the go on PATH is ${have:-broken}: $advice."

mkdir -p "$bin"

# One build at a time: test programs start together, and two cold builds side
# by side would take twice as long for the same result. The kernel drops the
# lock with the process, however it ends. Without flock (macOS) we may build
# twice, which is slow but, thanks to the mv below, still right.
if command -v flock >/dev/null; then
    exec 9>"$root/$key.lock"
    if ! flock -n 9; then
        say "waiting for another build of $key"
        flock 9
    fi
    # Left by builds that were killed; no other can be running now.
    rm -rf "$bin"/.tmp.*
fi

# In the folder of the result, so that mv is a rename and never a copy: a name
# without .tmp is always a whole binary.
tmp=$(mktemp -d "$bin/.tmp.XXXXXX")
builder=
# Bash runs this on SIGINT and SIGTERM too. A go left running would work on for
# minutes and then make the folder anew, to put its binary there.
cleanup() {
    if [ -n "$builder" ]; then
        kill "$builder" 2>/dev/null || :
        wait "$builder" 2>/dev/null || :
    fi
    rm -rf "$tmp"
}
trap cleanup EXIT

# A go.work above the checkout would replace our go.mod; a GOOS or GOARCH meant
# for the caller's own program would give binaries that do not start here.
# Without cgo no C compiler is needed.
unset GOOS GOARCH
export GOWORK=off CGO_ENABLED=0

build() { # NAME VERSION MODULE_FOLDER PACKAGE [LDFLAGS]
    local name=$1 version=$2 folder=$3 package=$4 ldflags=${5:-}
    if [ -x "$bin/$name" ]; then
        return
    fi
    say "building $name $version with go $have (minutes when Go's build cache is cold)"
    # -mod=readonly: what go.sum does not pin is an error, whatever GOFLAGS
    # says. 9>&-: go must not keep the lock after this script is gone.
    # >&2: stdout is for the folder. In the background: see cleanup.
    (cd "$here/$folder" &&
        exec go build -mod=readonly -trimpath -ldflags "-s -w $ldflags" -o "$tmp/$name" "$package") >&2 9>&- &
    builder=$!
    wait "$builder" || die "go build of $name $version failed."
    builder=
    # The linker ignores an -X for a variable that has moved, so look.
    case $("$tmp/$name" --version) in
        *"$version"*) ;;
        *) die "the $name just built does not say that it is $version." ;;
    esac
    mv "$tmp/$name" "$bin/$name"
    say "built $bin/$name"
}

# Released binaries get their version from the linker. Without it the server
# calls itself v0.0.0-master, which some clients refuse; client-go has its own
# copy, shown in user agents.
version_flags=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    minor=${kubernetes_version#*.}
    version_flags+=" -X $package.gitVersion=v$kubernetes_version"
    version_flags+=" -X $package.gitMajor=${kubernetes_version%%.*}"
    version_flags+=" -X $package.gitMinor=${minor%%.*}"
done

build etcd "$etcd_version" etcd go.etcd.io/etcd/server/v3
build kube-apiserver "$kubernetes_version" kubernetes k8s.io/kubernetes/cmd/kube-apiserver "$version_flags"
build kube-controller-manager "$kubernetes_version" kubernetes k8s.io/kubernetes/cmd/kube-controller-manager "$version_flags"

printf '%s\n' "$bin"
