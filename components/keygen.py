"""Program that makes one secret and writes it to standard output: `python -m components.keygen KIND`.

Run by a `command.local.Command`, whose output is a Pulumi secret. Nothing secret is ever an argument or a log line.
It uses the standard library and `ssh-keygen` only, so that it starts at once.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

#: Bits of the SSH key. ECS imports RSA keys everywhere; Ed25519 is not among the formats its pages list.
RSA_BITS = 4096

#: Length of the munge key in bytes (munged accepts 32 to 1,024).
MUNGE_KEY_BYTES = 128


def ssh_key() -> str:
    """An RSA key pair as JSON: `{"private": ..., "public": ...}` in OpenSSH format.

    Raises:
        FileNotFoundError: there is no ssh-keygen.
        subprocess.CalledProcessError: ssh-keygen failed.
    """
    with tempfile.TemporaryDirectory(prefix="hpc-key-") as folder:
        path = Path(folder) / "key"
        command = ["ssh-keygen", "-q", "-t", "rsa", "-b", str(RSA_BITS), "-N", "", "-C", "hpc-cluster", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        public = path.with_suffix(".pub").read_text(encoding="ascii").strip()
        return json.dumps({"private": path.read_text(encoding="ascii"), "public": public})


def munge_key() -> str:
    """A munge key, base64."""
    return base64.b64encode(secrets.token_bytes(MUNGE_KEY_BYTES)).decode("ascii")


def password() -> str:
    """A password of 256 random bits, made of letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(32)


def keep() -> str:
    """The secret that was made before: what an update of the command gives, so that a secret never changes by itself.

    Raises:
        KeyError: there is none.
    """
    return os.environ["PULUMI_COMMAND_STDOUT"]


KINDS = {"ssh-key": ssh_key, "munge-key": munge_key, "password": password, "keep": keep}


def main(arguments: list[str]) -> int:
    """Write one secret; the exit code is 2 for a wrong call or a missing tool."""
    if len(arguments) != 1 or arguments[0] not in KINDS:
        sys.stderr.write(f"usage: python -m components.keygen {'|'.join(KINDS)}\n")
        return 2
    try:
        sys.stdout.write(KINDS[arguments[0]]())
    except FileNotFoundError:
        sys.stderr.write("ssh-keygen is not installed; install the OpenSSH client\n")
        return 2
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"ssh-keygen failed with exit code {error.returncode}\n")
        return 2
    except KeyError:
        sys.stderr.write("there is no earlier secret to keep\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
