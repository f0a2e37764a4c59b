// Package query is the codec of the awsQuery protocol: a form comes in, XML goes out.
//
// Requests and replies are the structs of aws-sdk-go-v2, walked by reflection.
// What reflection cannot see (the element names of lists, which members are
// required, which actions have no result) comes from botocore's models through
// gen/gen.py, as one Model per service. It knows no operation and does not log.
// Only internal/api calls it, and only this package writes an XML error body.
//
// Invariants: nothing in a form is dropped silently (Decode returns what it did
// not consume), a reply holds no null, and every size is bounded by a constant.
package query

//go:generate python3 gen/gen.py
