"""Blocks: runs of consecutive entries of a log, compressed by columns; they give the entries back byte for byte.

packing    entries as a block
block      a block as entries
part       some of them, read when they are looked at
envelopes  what an entry says beside its rows
rows       records as columns
texts      ids as columns
container  named columns as bytes
columns    numbers as few bytes
decimals   numbers of few digits as whole ones
steps      a turn for others while a block is packed
"""

from app.streams.log.blocks.block import MOST_BLOCK_ENTRIES, Block, unpack
from app.streams.log.blocks.packing import pack, pack_in_turns
from app.streams.log.blocks.part import Part

__all__ = ["MOST_BLOCK_ENTRIES", "Block", "Part", "pack", "pack_in_turns", "unpack"]
