"""The demo: six small sites. `webqueue demo` crawls them; the targets of "Load the demo" walk through their pages.

As web servers on loopback (`servers`) they are a process of their own and know nothing of webqueue, as the sites of the
world do: `python -m webqueue.demo` serves them until its standard input is closed, and its first line of output says where
they are.
"""

from __future__ import annotations
