package rds

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"kurabe"
)

// common are the codes that any service of AWS may send; no model lists them.
var common = []kurabe.Code{
	kurabe.CodeInternal, kurabe.CodeInvalidParameterValue, kurabe.CodeInvalidParameterCombo,
	kurabe.CodeUnsupported, kurabe.CodeThrottled, kurabe.CodeUnavailable,
}

func TestEveryCodeHasAWireCodeOfTheModel(t *testing.T) {
	known := map[string]int{}
	for pair := range strings.FieldsSeq(modelErrors["rds"]) {
		code, status, _ := strings.Cut(pair, "=")
		known[code], _ = strconv.Atoi(status)
	}
	for _, code := range kurabe.Codes {
		w, ok := errorCodes[code]
		switch {
		case ok == slices.Contains(common, code):
			t.Errorf("%s has one wire code: that of RDS (%v), or that of all services", code, w)
		case ok && known[w.Code] != w.Status:
			t.Errorf("%s: %s is %d, and %d in RDS's model (0 is unknown)", code, w.Code, w.Status, known[w.Code])
		}
	}
	if len(errorCodes)+len(common) != len(kurabe.Codes) {
		t.Errorf("%d wire codes for %d codes", len(errorCodes)+len(common), len(kurabe.Codes))
	}
}
