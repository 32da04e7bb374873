"""Records: what a label that comes hours later needs to know of its sample.

records   n samples as columns
encoding  records as bytes
layout    the fields of a record
"""

from core.records.records import Records

__all__ = ["Records"]
