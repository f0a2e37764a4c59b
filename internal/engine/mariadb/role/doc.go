// Package role reads an assignment: whether the server writes, follows or receives nothing, which
// followers its commits wait for, and the names of the accounts of members. It is pure.
package role
