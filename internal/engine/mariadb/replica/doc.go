// Package replica changes and watches the role of a server in its group: the accounts of members,
// following and ceasing to receive, semi-synchronous commits, promotion, and what a primary sees of
// its followers. Copies of data and private servers are its callers' (package mariadb).
//
// Invariant: a follower's file (FollowFile) is there before the server follows and goes only when
// it has applied all that it received, so no start makes a primary of a follower.
package replica
