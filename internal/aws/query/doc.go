// Package query is the codec of the awsQuery protocol: a form comes in, XML goes out.
//
// Requests and replies are structs, walked by reflection with the names of a shape.Model. It
// knows no operation and does not log. Only internal/api calls it, and only this package writes
// an XML error body.
//
// Invariants: nothing in a form is dropped silently (Decode leaves it in the form, for
// Unconsumed), a reply holds no null, and every size is bounded by a constant.
package query
