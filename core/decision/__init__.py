"""The decision: what is flagged, how rare it is, and which incident it belongs to.

rule        the decision of each score, in order
incidents   runs of flagged samples
stillness   how long values stand still
settling    the time after an incident was accepted
"""
