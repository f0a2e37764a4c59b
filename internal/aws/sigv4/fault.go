package sigv4

import (
	"net/http"
	"strings"

	"kurabe/internal/aws/fault"
)

// Every way to fail, with AWS's own code, status and words.

func missingToken() error {
	return fault.New(http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
}

func incomplete(format string, args ...any) error {
	return fault.New(http.StatusBadRequest, "IncompleteSignature", format, args...)
}

func invalidToken(why string) error {
	return fault.New(http.StatusForbidden, "InvalidClientTokenId",
		"The security token included in the request is invalid%s.", why)
}

func mismatch(format string, args ...any) error {
	return fault.New(http.StatusForbidden, "SignatureDoesNotMatch", format, args...)
}

// WrongService refuses a credential that is scoped to another service than services.
func WrongService(services ...string) error {
	return mismatch("Credential should be scoped to correct service: '%s'.", strings.Join(services, "' or '"))
}

func wrongSignature() error {
	return mismatch("The request signature we calculated does not match the signature you provided. " +
		"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
}

func requestExpired() error {
	return fault.New(http.StatusBadRequest, "RequestExpired", "Request has expired.")
}

func payloadMismatch() error {
	return fault.New(http.StatusBadRequest, "XAmzContentSHA256Mismatch",
		"The provided 'x-amz-content-sha256' header does not match what was computed.")
}
