"""The sites of `webqueue demo`: six small web servers on loopback, in a process of their own.

They know nothing of webqueue, as the sites of the world do: `python -m webqueue.demo` serves them until its standard
input is closed, and its first line of output says where they are.
"""

from __future__ import annotations
