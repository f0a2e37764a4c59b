// Package explain tells in words what a service knows of an instance or a cluster: what was
// asked for, what its hosts see, and what the planner would do next.
package explain
