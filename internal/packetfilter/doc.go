// Package packetfilter has the kernel enforce security groups on the host that holds the
// endpoints and the servers: one nftables table for each service, which is replaced as a whole in
// one transaction, beside the tables of the host's owner, which it never touches.
//
// A packet to a filtered address and port is let through if its source address is in one of the
// permitted networks. Packets from this machine are judged where they leave their socket, since
// only there the kernel knows whose they are: the service's own connections (ownconn.Mark), and
// those of the engines' accounts to servers that they follow, pass. Packets of an engine's account
// are judged by their destination, too.
//
// The rules are in the kernel: they stay when this process dies, and while it is away. Every
// change also ends the connections that the new rules do not permit. Rendering is pure (Render);
// Table is the only writer.
//
// It needs root (CAP_NET_ADMIN) and nf_tables; Probe says why a host lacks it. Called by
// internal/agent.
package packetfilter
