"""Records: what a label that comes hours later needs to know of its sample.

records  n samples as columns
layout   the fields of a record, and its bytes
"""

from core.records.records import Records

__all__ = ["Records"]
