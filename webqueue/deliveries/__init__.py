"""Exports and messages: queued in the transaction that makes them due, delivered by loops of their own (DESIGN section 3).

They hold no rate key. `queue.enqueue` queues one, its `kind` names the `work.Deliverer` that delivers it, and
`loop.DeliveryLoop` is what a process runs for it.
"""
