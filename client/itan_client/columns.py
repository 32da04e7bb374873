"""Answers in columns, as arrays and as a frame."""

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


class Columns(msgspec.Struct, frozen=True):
    """Columns of one length; those that an answer lacks are None. numpy and pandas are imported only when asked for."""

    __columns__: ClassVar[tuple[str, ...]] = ()
    __time__: ClassVar[str | None] = None

    def arrays(self) -> "dict[str, NDArray[Any]]":
        """Give the columns as numpy arrays; where a number is not known, NaN."""
        return {name: array_of(values) for name, values in self._present().items()}

    def to_pandas(self, index: Any = None) -> "pd.DataFrame":
        """Give the columns as a frame, by an index: that of the samples that were sent, or the times of the answer."""
        import pandas as pd

        columns = self.arrays()
        if index is None and self.__time__ is not None:
            index = pd.to_datetime(columns.pop(self.__time__), unit="s", utc=True).rename(self.__time__)
        return pd.DataFrame(columns, index=index)

    def _present(self) -> dict[str, list[Any]]:
        columns = {name: getattr(self, name) for name in self.__columns__}
        return {name: values for name, values in columns.items() if values is not None}


def array_of(values: list[Any]) -> "NDArray[Any]":
    """Give a column as an array: of booleans, whole numbers or floats if it can be, else of objects."""
    import numpy as np

    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} and kinds | ({float} if None in values else set()) != {int}:
        return np.array(values, dtype=np.float64)
    return np.array(values, dtype=None if kinds in ({int}, {bool}) and None not in values else object)
