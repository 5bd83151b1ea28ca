"""Write a GGUF file again with its weights as floats, so that llama.cpp runs them unquantised.

``python benchmarks/gguf_float.py IN.gguf OUT.gguf --dtype float16``. Metadata and tensor order are
kept; vectors stay float32, as llama.cpp's own converter leaves them.
"""

import argparse
from pathlib import Path
from typing import Any

import gguf
import numpy as np

FILE_TYPES = {"float32": gguf.LlamaFileType.ALL_F32, "float16": gguf.LlamaFileType.MOSTLY_F16}
_WRITTEN_BY_WRITER = {gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.QUANTIZATION_VERSION}


def convert(source: Path, target: Path, dtype: str) -> None:
    """Dequantise every tensor of ``source`` into ``target``."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    writer = gguf.GGUFWriter(target, architecture)
    _copy_metadata(reader, writer)
    writer.add_file_type(FILE_TYPES[dtype])
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, _as_float(tensor, np.dtype(dtype)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _copy_metadata(reader: Any, writer: Any) -> None:
    for key, field in reader.fields.items():
        own = key.startswith("GGUF.") or key in _WRITTEN_BY_WRITER
        if own or key == gguf.Keys.General.FILE_TYPE:
            continue
        sub_type = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type)


def _as_float(tensor: Any, dtype: np.dtype[Any]) -> Any:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return values.astype(np.float32 if values.ndim == 1 else dtype)


def main() -> None:
    """Convert one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--dtype", choices=sorted(FILE_TYPES), default="float32")
    arguments = parser.parse_args()
    convert(arguments.source, arguments.target, arguments.dtype)


if __name__ == "__main__":
    main()
