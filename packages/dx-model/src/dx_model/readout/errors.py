"""What a readout refuses: one exception that names the field."""


class ReadoutError(ValueError):
    """A readout, its rows or its record is refused; `field` is the dotted name of what is wrong."""

    def __init__(self, field: str, value, expected: str):
        self.field = field
        super().__init__(f"{field} = {value!r}: expected {expected}")


def require(holds, field: str, value, expected: str) -> None:
    """Raises ReadoutError unless `holds`."""
    if not holds:
        raise ReadoutError(field, value, expected)
