#!/bin/bash
# Started by the runner, with ROLE, TESTCASE, REQUESTS and the other variables of its contract.

# Routes through the network simulator.
/setup.sh

# The simulator carries single packets.
ethtool -K eth0 tx-udp-segmentation off 2>/dev/null

if [ "$ROLE" = client ]; then
    /wait-for-it.sh sim:57832 -s -t 30
fi
exec hybriq-interop
