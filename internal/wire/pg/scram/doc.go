// Package scram makes the verifiers of passwords that PostgreSQL keeps (SCRAM-SHA-256, RFC 5803 and
// RFC 7677), so that no server ever sees a password. It knows no server and reads no file; the API
// and the driver call it.
package scram
