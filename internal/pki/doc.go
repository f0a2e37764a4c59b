// Package pki is the service's own certificate authority: a root key made once
// and kept in DATA/pki, servers' certificates signed with it, and keys and
// requests made on the hosts.
//
// A private key never leaves the host that made it: agents send a request
// (NewKeyAndCSR) and get a certificate back. What must not live here: which
// addresses an instance may claim; whoever calls Sign decides that, and the
// addresses and names in a request are ignored, but for its common name.
package pki
