"""Handlers in a process of their own: what is said over the wire, and the program at its other end.

The worker's thread stays the owner of the job: it holds the lease, and every write and every request is its own. The
process asks for them, one at a time, in lines of JSON over a pair of sockets that only the two have:

    worker  {"start": {job, site, target, force, checkpoint, path}}      once
    process {"call": NAME, "with": {...}}       answered by {"answer": ...} or {"raise": {...}}
    process {"tell": NAME, "with": {...}}       progress, page and log are not answered
    process {"end": OUTCOME or null, "lease_lost": false}                once, its last word

It is an internal matter of one version: both ends are always started from the same installation.
"""
