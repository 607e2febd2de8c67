"""Made by build_files.py. Pointers and structs are cffi's."""
from typing import Any

ffi: Any
lib: Any
