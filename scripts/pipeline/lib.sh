# shellcheck shell=bash
# What the steps of the pipelines share; sourced, not run.
# Each step runs on a person's machine as it runs in CI: scripts/pipeline/preview.sh dev

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

REPORTS=${REPORTS:-out/reports}

# The project's Python; `make setup` makes it.
python() {
    .venv/bin/python "$@"
}

hpc() {
    .venv/bin/hpc "$@"
}

# Stacks of the repository, one a line, in the order in which changes go through them; the local one is none of them.
stacks() {
    local name
    for name in dev staging prod; do
        [ -f "Pulumi.$name.yaml" ] && echo "$name"
    done
    for file in Pulumi.*.yaml; do
        name=${file#Pulumi.}
        name=${name%.yaml}
        case $name in dev | staging | prod | local | yaml) ;; *) echo "$name" ;; esac
    done
}

# The stack that a step was given, as its only argument.
the_stack() {
    if [ $# -ne 1 ] || [ ! -f "Pulumi.$1.yaml" ]; then
        echo "usage: $0 STACK   (one of: $(stacks | tr '\n' ' ')local)" >&2
        exit 2
    fi
    echo "$1"
}
