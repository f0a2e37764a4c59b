// Package parameter holds the use cases of parameter groups, of instances and of clusters:
// their parameters, the values that these may have, and the room that the values may take.
package parameter
