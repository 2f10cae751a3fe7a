#!/usr/bin/env bash
# Preview of one stack with the policy pack. The reports go to $REPORTS/STACK.
# BASE names the commit that price and rules are compared with; the deployed stack unless given.
# Exit code 0: passed; 1: refused; 2: could not run.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"
stack=$(the_stack "$@")

base=()
if [ -n "${BASE:-}" ]; then
    base=(--base "$BASE")
fi
hpc preview "$stack" --reports "$REPORTS/$stack" "${base[@]}"
