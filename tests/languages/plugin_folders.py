"""Where the toy language is: a folder as `pip install --target` leaves it."""

from pathlib import Path
from typing import Final

TOY: Final = Path(__file__).with_name("toy")
