// Package connlimit bounds how many connections one address may have open to an HTTP server.
//
// Whoever opens connections and says nothing costs the service memory and descriptors, which its
// databases need, before anybody knows who that is. What lives here is the count and nothing
// else: time limits and the sizes of requests are the server's own. internal/service and
// internal/hostlink call it.
package connlimit
