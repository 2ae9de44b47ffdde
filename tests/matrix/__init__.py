"""Every official client with every kind of upstream, through the gateway.

clients.py and plans.py say who does what; drivers/ are the clients, one process a run, upstreams/ the servers; tap.py
records both sides of the gateway; stages.py sets up one upstream with its gateway and runs the cells; edits.py holds
every difference that a cell may show, eras.py what an upstream may see.
"""
