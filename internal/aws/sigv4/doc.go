// Package sigv4 verifies AWS Signature Version 4 on requests that reach a server,
// in the header form and in the presigned query form.
//
// Verify recomputes the signature from the request as it arrived and from the
// body as it was read, and answers with AWS's own codes and words when they
// differ. It knows no service beyond its signing name, keeps no state and does
// not log. internal/api calls it once per request, before anything is decoded.
//
// Invariants: a request that passes was signed, whole, by the holder of the
// secret key, for this service and region, within MaxSkew of now; the body is
// never larger than its service allows; signatures are compared in constant time.
package sigv4
