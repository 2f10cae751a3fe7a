#!/usr/bin/env bash
# Nightly: does the cloud still look as the state says, and does the deployed state still keep the rules?
# Exit code 0: yes; 1: drift, or a rule is violated; 2: it could not be found out.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"
stack=$(the_stack "$@")

worst=0
hpc refresh "$stack" --yes --preview-only --expect-no-changes || worst=$?
code=0
hpc preview "$stack" --deployed --reports "$REPORTS/$stack" || code=$?
[ "$code" -gt "$worst" ] && worst=$code
exit "$worst"
