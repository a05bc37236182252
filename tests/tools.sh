#!/bin/sh
# Installs the programs by which tests look at what we print, unless they are there: Debian's Chromium with its driver for the
# page of the audit, and xmllint for the JUnit reports.
set -eu

for program in chromium chromedriver xmllint; do
    command -v "$program" >/dev/null || missing="${missing:-} $program"
done
[ -n "${missing:-}" ] || exit 0
echo "installing$missing with apt-get (needs root)" >&2
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
    chromium chromium-driver fonts-dejavu-core libxml2-utils
