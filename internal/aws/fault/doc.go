// Package fault holds the one error that every AWS protocol can put on the wire.
//
// sigv4 and the decoders return a *Fault; the dispatcher in internal/api maps the
// service's own errors to one; each codec writes it in its protocol's form. It
// knows no service and writes no bytes.
package fault
