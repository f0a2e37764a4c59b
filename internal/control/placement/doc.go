// Package placement tells whether hosts can take servers: the class and the storage that they can
// hold at all, the memory that is free, and the zones. Where a server goes, the planner decides.
package placement
