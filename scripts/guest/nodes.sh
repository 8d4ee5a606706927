# SPDX-License-Identifier: MIT
# Sourced by scripts that run in the guest: the two nodes.

ADDRESS_A=10.77.0.1
ADDRESS_B=10.77.0.2
export PATH=/sluice/build/${USERSPACE:-userspace}/cli:$PATH

# Run a command in the node a or b.
on()
{
	local node=$1
	shift
	ip netns exec "$node" "$@"
}

# The same in place of this shell, so that its process is the command's.
enter_node()
{
	local node=$1
	shift
	exec ip netns exec "$node" "$@"
}

# Node: a network namespace with one end of a veth pair, and an RDMA device on
# it. The MTU has room for an RDMA MTU of 4096 and its headers.
node()
{
	local node=$1 address=$2

	ip netns add "$node"
	ip link set "veth-$node" netns "$node"
	ip -n "$node" address add "$address/24" dev "veth-$node"
	ip -n "$node" link set "veth-$node" mtu 4500 up
	ip -n "$node" link set lo up
	on "$node" rdma link add "rxe-$node" type rxe netdev "veth-$node"
}

two_nodes()
{
	[ ! -e /var/run/netns/b ] || return 0
	modprobe rdma_rxe
	ip link add veth-a type veth peer name veth-b
	node a $ADDRESS_A
	node b $ADDRESS_B
}

# End a process that has no more to do, if it does not end by itself.
stop_soon()
{
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.2
	done
	kill "$1" 2>/dev/null || :
}
