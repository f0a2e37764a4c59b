// Package network holds the use cases of subnets and of the groups of them. Kurabe has one flat
// network; its subnets stand for the availability zones.
package network
