"""Entry point of the pack: the engine runs this folder."""

import faulthandler
import sys
from pathlib import Path

# The engine waits for the pack without end. One that does not serve in time ends, which fails the preview.
faulthandler.dump_traceback_later(120, exit=True)

# The folder of the pack must not hide modules of the same name; the packages live beside it.
sys.path[:] = [
    str(Path(__file__).resolve().parent.parent),
    *(entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent),
]

from policies.later import load_later  # noqa: E402

load_later()

from policies.adapter import Seen  # noqa: E402
from policies.pack import PACK, policies  # noqa: E402
from policies.serve import serve  # noqa: E402

seen = Seen()
serve(PACK, policies(seen=seen), seen)
