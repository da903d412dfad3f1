"""Real servers for the integration tests, each in a process of its own on loopback, and the peers that tests play."""
