"""Streams: their samples, logs and models.

Each package imports only the ones below it:

- changes: what changes a stream: samples, labels, creation, reset, import
- views: what is read of a stream: scores, density, history, live updates
- maintenance: background work and operators' work: snapshots, sweeps, checks, repairs, backups
- open: streams in memory: loaded from the store, leased, kept within the memory limit, replaced and deleted
- batches: the samples of one request: their forms and checks, and the answer
- log: what a stream's log says, and how far back it is kept

Below them: ids, allowance (what a request may use), slices (work in short pieces), errors and faults.
"""
