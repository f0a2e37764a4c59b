// Package shape knows how a struct of an AWS service is written: the names of its members,
// which of them must be there, and which actions a service has.
//
// Structs are those of aws-sdk-go-v2, or our own. What reflection cannot see comes from
// botocore's models through gen/gen.py, as one Model for each service; the tag `json:"name"` of
// one of our own structs comes before that. The codecs (query, document) stand on it. It
// knows no format and does not log.
//
// Invariant: a Model does not change once it is made.
package shape

//go:generate python3 gen/gen.py
