"""The archive: the older part of a stream's log, as files beside the store.

files      what the index in the store says of a file
names      where files lie
ids        which client ids a file may hold
tables     the same samples and labels as Parquet, for people
archive    writes and reads files
tier       the archived part of one stream's log
log        the log that begins there and goes on in the store
"""
