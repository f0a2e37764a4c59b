package api

import (
	"errors"
	"fmt"
	"testing"

	"kurabe"
	"kurabe/internal/aws/fault"
)

func TestFaultOf(t *testing.T) {
	cause := errors.New("secret cause")
	cases := []struct {
		name, want string
		err        error
	}{
		{"with a code", "InvalidDBInstanceState: stopped", &kurabe.Error{Code: kurabe.CodeInvalidInstanceState, Message: "stopped", Err: cause}},
		{"wrapped", "DBInstanceNotFound: 100%", fmt.Errorf("x: %w", kurabe.Errorf(kurabe.CodeInstanceNotFound, "100%%"))},
		{"codec's", "MalformedInput: m", fmt.Errorf("x: %w", fault.New(400, "MalformedInput", "m"))},
		{"without a code", "InternalFailure: " + internalMessage, cause},
		{"internal", "InternalFailure: " + internalMessage, kurabe.Errorf(kurabe.CodeInternal, "m")},
		{"of another service", "InternalFailure: " + internalMessage, kurabe.Errorf(kurabe.CodeProxyNotFound, "m")},
		{"code outside the list", "InternalFailure: " + internalMessage, kurabe.Errorf("other", "m")},
	}
	service := &Service{Errors: testErrors}
	for _, c := range cases {
		if got := service.faultOf(c.err).Error(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
