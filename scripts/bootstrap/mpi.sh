#!/bin/bash
# Installs the MPI stacks of the cluster on shared storage, once: <cluster folder>/mpi/<stack>/<version>. They come as
# PyPI wheels, which hold relocatable builds that are the same on every distribution.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=controller.sh
. "$here/controller.sh"
exec 3>&2
# shellcheck disable=SC1091
. "$HPC_LINK/etc/cluster.env"

# Intel's wheels hold every library several times, under each of its names, and their own compiler wrappers look for
# Fortran modules in a folder that is not there.
finish_intelmpi() {
    local root=$1 file sum first
    declare -A seen=()
    while IFS= read -r -d '' file; do
        sum=$(sha256sum "$file" | cut -d' ' -f1)
        first=${seen[$sum]:-}
        if [[ -n $first ]]; then ln -f "$first" "$file"; else seen[$sum]=$file; fi
    done < <(find "$root" -type f -size +64k -print0 | sort -z)
    ln -sfn mpi/gfortran "$root/include/gfortran"
    # They bring no libfabric, without which Intel MPI runs on one node only: take the one of the MPICH wheel.
    mkdir -p "$root/lib/libfabric"
    pip_install --no-deps --require-hashes --prefix "$root.fabric" -r "$here/mpi-mpich.txt"
    cp "$root.fabric/lib/mpich/libfabric.so.1" "$root/lib/libfabric/libfabric.so.1"
    cp -r "$root.fabric/lib/mpich/libfabric" "$root/lib/libfabric/prov"
    rm -rf "$root.fabric"
}

install_stack() {
    local stack=$1 version=$2 root=$HPC_LINK/mpi/$1/$2
    [[ -e $root/.complete ]] && return 0
    if [[ $stack == intelmpi && $(uname -m) != x86_64 ]]; then
        say "Intel MPI is for x86_64 only: not installed"
        return 0
    fi
    rm -rf "$root" "$root.fabric"
    # Straight into its place: wrappers find their files relative to themselves, so a half-made folder is only marked
    # complete at the end.
    retry 3 pip_install --no-deps --require-hashes --prefix "$root" -r "$here/mpi-$stack.txt" ||
        fail HPC928 "$stack $version cannot be installed from $HPC_PYPI"
    if [[ $stack == intelmpi ]]; then finish_intelmpi "$root"; fi
    "$root/bin/mpicc" -show >/dev/null 2>&1 || fail HPC928 "$stack $version has no working mpicc"
    touch "$root/.complete"
    changed "$stack $version"
}

for item in $HPC_MPI_STACKS; do
    install_stack "${item%%/*}" "${item#*/}"
done
