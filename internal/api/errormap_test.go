package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/aws/fault"
)

// common are the errors that any AWS service may send; no model lists them.
var common = map[string]int{
	"InternalFailure": 500, "InvalidParameterValue": 400, "InvalidParameterCombination": 400, "MissingParameter": 400,
	"Throttling": 400, "ServiceUnavailable": 503, "AccessDenied": 403,
	"UnsupportedOperation": 400, // EC2's; RDS has nothing nearer
}

func TestEveryCodeHasAWireCodeOfTheModel(t *testing.T) {
	known := map[string]int{}
	for pair := range strings.FieldsSeq(modelErrors["rds"]) {
		code, status, _ := strings.Cut(pair, "=")
		known[code], _ = strconv.Atoi(status)
	}
	for code, status := range common {
		known[code] = status
	}
	for _, code := range kurabe.Codes {
		w, ok := wires[code]
		switch {
		case !ok:
			t.Errorf("%s has no wire code", code)
		case known[w.code] != w.status:
			t.Errorf("%s: %s is %d, and %d in RDS's model (0 is unknown)", code, w.code, w.status, known[w.code])
		}
	}
	if len(wires) != len(kurabe.Codes) {
		t.Errorf("%d wire codes for %d codes", len(wires), len(kurabe.Codes))
	}
}

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
		{"code outside the list", "InternalFailure: " + internalMessage, kurabe.Errorf("other", "m")},
	}
	for _, c := range cases {
		if got := faultOf(c.err).Error(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
