#!/bin/sh
# Installs what the test of the audit's page needs, unless it is there: Debian's Chromium and its driver.
set -eu

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
echo "installing chromium and chromium-driver (needs root)" >&2
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium chromium-driver fonts-dejavu-core
