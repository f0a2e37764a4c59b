// Package event has what RDS tells of its resources: the id, the source type, the
// categories and the words of each event that is told here, in one place.
//
// The source is the RDS user guide, "Amazon RDS event categories and event messages"
// (USER_Events.Messages). A single sentence has no full stop here, though that page prints
// one: DescribeEvents shows none, and what is to be added follows with And. Whatever RDS has
// no event for has an id that begins with KURABE-EVENT-, and its words where it is told.
//
// plan and control tell of events, and reconcile says those of an instance of its cluster.
// Nobody else names an id of RDS: one that is written where it is told can be that of
// another event, which no client of DescribeEvents would see, and everyone who is sent it.
package event
