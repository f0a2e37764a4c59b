// Package sdkhttp is the HTTP client under our own uses of the AWS SDK for Go:
// the short commands, the tests, the benchmarks.
//
// The SDK closes a request's body as soon as it has the reply's head; if net/http
// is still finishing the write then, it cuts the connection and the SDK sends the
// request again (https://github.com/aws/aws-sdk-go-v2/issues/2737). Over loopback
// that happens, and a create that worked would be reported as AlreadyExists. Here
// the transport gets a body of its own, which nobody closes under it.
package sdkhttp
