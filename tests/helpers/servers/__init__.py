"""Real HTTP servers to crawl: `with Server(StaticSite(folder)) as server: … server.url … server.requests`.

`base` has the server and its request log, the other modules one kind of site each.
"""
