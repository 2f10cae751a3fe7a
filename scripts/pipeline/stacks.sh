#!/usr/bin/env bash
# The stacks as a JSON list, for a matrix of jobs.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"
stacks | sed 's/.*/"&"/' | paste -sd, - | sed 's/.*/[&]/'
