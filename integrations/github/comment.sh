#!/usr/bin/env bash
# Compares two trees of manifests and writes what would be deleted into one comment of a pull request. The comment is
# found again by its first line, and written anew at every run.
set -euo pipefail

report="$(mktemp)"
trap 'rm -f "$report"' EXIT
read -r -a more <<<"${ARGUMENTS:-}"
code=0
cascade-guard diff "$BEFORE" "$AFTER" --fail-on "${FAIL_ON:-deny}" -o markdown ${more[@]+"${more[@]}"} >"$report" || code=$?
# Where nothing could be compared there is nothing to show.
[ -s "$report" ] || exit "$code"
cat "$report" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"

if [ "${COMMENT:-true}" = true ] && [ -n "${PULL_REQUEST:-}" ]; then
    comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
    own='.[] | select(.body | startswith("<!-- cascade-guard -->")) | .id'
    id="$(gh api --paginate "$comments" --jq "$own" | awk 'NR == 1')"
    if [ -n "$id" ]; then
        gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$report"
    else
        gh api --silent --method POST "$comments" --field "body=@$report"
    fi
fi
exit "$code"
