// Package rds is the RDS API: the table of its operations, one file per resource.
//
// A handler translates between AWS's shapes and kurabe's nouns and calls
// internal/control; it decides nothing itself. AWS's names stop here. Its action
// is a row of the resource's rows method, which ops gathers; an action without a
// row answers UnsupportedOperation with the reason in unsupported.go.
package rds
