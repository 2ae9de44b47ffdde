"""A sample server of the demo, on the official SDK, which sends its spans: `server.py COLLECTOR harbour|weather`."""

import sys

import traced

from gateway.demo import leash, sample

traced.send("upstream", sys.argv[1])
leash.hold()
sample.serve(sys.argv[2])
