// Package event has the events of the service's resources: the id, the source type, the
// categories and the words of each, in one place.
//
// The source is the RDS user guide, "Amazon RDS event categories and event messages"
// (USER_Events.Messages). A single sentence has no full stop here, though that page prints
// one: DescribeEvents shows none, and what is to be added follows with And. An event
// that RDS does not have begins with KURABE-EVENT- (own.go); its number is used once, but for the
// two histories, of an instance and of its snapshot or its replica, that tell of one thing.
//
// plan, control and hostlink write events, and reconcile says those of an instance of its cluster.
// Nobody else names an id: a wrong one would be seen by no client of DescribeEvents, and by
// everyone who is sent it. All has them for the guide's table (docs/guide/events.md) and for tests.
package event
