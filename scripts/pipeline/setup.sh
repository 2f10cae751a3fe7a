#!/usr/bin/env bash
# Python packages and the engine; both are cached by CI.
# shellcheck source=scripts/pipeline/lib.sh
source "$(dirname "$0")/lib.sh"
make setup
python -m hpc.engine path
