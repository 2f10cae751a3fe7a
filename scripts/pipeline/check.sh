#!/usr/bin/env bash
# All that needs no account: each stack file, its price, and what a branch changes in it. Also a pre-commit hook.
# BASE names the commit that the price is compared with; no comparison unless given.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"

worst=0
for stack in $(stacks) local; do
    code=0
    hpc validate "$stack" || code=$?
    if [ "$code" -eq 0 ]; then
        hpc estimate "$stack" --format markdown ${BASE:+--diff "$BASE"} || code=$?
    fi
    [ "$code" -gt "$worst" ] && worst=$code
done
exit "$worst"
