#!/usr/bin/env bash
# All that needs no account: each stack file, its price, and what a branch changes in it. Also a pre-commit hook.
# BASE names the commit that the price is compared with; no comparison unless given.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
worst=0
for stack in $(stacks) local; do
    code=0
    hpc validate "$stack" || code=$?
    if [ "$code" -eq 0 ]; then
        diff=()
        if [ -n "${BASE:-}" ] && git show "$BASE:Pulumi.$stack.yaml" >"$before/Pulumi.$stack.yaml" 2>/dev/null; then
            # A base that is refused itself is nothing to compare with.
            hpc validate "$before/Pulumi.$stack.yaml" >/dev/null 2>&1 && diff=(--diff "$before/Pulumi.$stack.yaml")
        fi
        hpc estimate "$stack" --format markdown "${diff[@]}" || code=$?
    fi
    [ "$code" -gt "$worst" ] && worst=$code
done
exit "$worst"
