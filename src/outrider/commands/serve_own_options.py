"""The options of ``outrider serve`` without ``--engine``. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from outrider.commands.options import option


@dataclass(frozen=True, kw_only=True)
class Own:
    """Of the embedded engine's server."""

    slots: Annotated[int, option("--slots", metavar="N", text="Own engine: texts at once; 4.", min=1)] = 4
    waiting: Annotated[
        int, option("--waiting", metavar="N", text="Own engine: texts that may wait for a slot; 64.", min=0)
    ] = 64
    deadline: Annotated[
        float, option("--deadline", metavar="S", text="Own engine: seconds that a request may take; 600.", min=0.1)
    ] = 600.0
    key_file: Annotated[
        Path | None,
        option("--api-key-file", metavar="FILE", text="Own engine: API keys, one a line; or OUTRIDER_API_KEY."),
    ] = None
    certificate: Annotated[
        Path | None, option("--tls-certificate", metavar="FILE", text="Own engine: PEM; serve HTTPS.")
    ] = None
    private_key: Annotated[
        Path | None, option("--tls-key", metavar="FILE", text="Own engine: PEM, of the certificate.")
    ] = None
    name: Annotated[
        str | None, option("--served-name", metavar="NAME", text="Own engine: what clients call the model.")
    ] = None
