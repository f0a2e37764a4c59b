// Package process is the process of one proxy: it reads its folder, composes the event loop,
// the pool and the frontends of its endpoints, and answers on a socket in its folder.
//
// It outlives agent and service, and starts again from its files alone. The agent writes them
// and asks over the socket (Client); nobody else does.
//
// The folder:
//
//	config.json   Config, with passwords: 0600, the proxy's own user's
//	route.json    pool.Route
//	run/control   the socket: GET /status, POST /reload, POST /stop
//	run/proxy.log RDS's lines, rotated
//
// Invariants: what is in force is what the files said at the newest reload that succeeded; a
// file that cannot be read changes nothing; a route of a lower epoch is never followed.
//
// Called by cmd/kurabe (`kurabe proxy run`) and, as a client, by internal/agent/proxy.
package process
