"""The same backfill inside Spark, and streams that go on in a streaming query.

batch     a table of history, a stream a group
query     samples and labels as they come, with state that Spark keeps
kept      the log of a stream in that state
"""
