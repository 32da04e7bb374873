"""Backfill: history through the same core as the service's, on one machine or inside Spark. It imports no server.

job        what is asked for
rows       samples of one stream, in order
dues       when each label is told
kept       the log of a stream, as far as labels reach
stream     one stream, computed as a service would
"""
