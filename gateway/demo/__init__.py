"""The demo: two sample upstreams of one era each, the gateway before them, and official clients of both eras."""
