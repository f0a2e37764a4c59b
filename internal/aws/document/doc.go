// Package document is the codec of the protocols that send whole documents: awsJson and RPCv2
// CBOR.
//
// Both formats are read into one tree of maps, lists and leaves, and written from one. The walk
// between a tree and the structs of an action is the same for both (fill.go, tree.go); names come
// from a shape.Model. A JSON or CBOR in fault's form is written here alone.
//
// Invariants: what a struct has no place for is refused, and so is a name that comes twice, for
// an accepted parameter is a promise. Depth and number of values are bounded before the tree
// is made, the bytes by the reader of the request.
package document
