#!/usr/bin/env bash
# Deployment of one stack. It is previewed again first: what was approved may have been overtaken.
# Exit code 0: done; 1: refused; 2: it failed.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"
stack=$(the_stack "$@")

hpc preview "$stack" --reports "$REPORTS/$stack"
hpc up "$stack" --yes
