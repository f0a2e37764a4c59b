package api

import (
	"errors"
	"net/http"

	"kurabe"
	"kurabe/internal/aws/fault"
)

// common are the errors of every service that has no others for them.
var common = Errors{
	kurabe.CodeInternal:              {"InternalFailure", 500},
	kurabe.CodeInvalidParameterValue: {"InvalidParameterValue", 400},
	kurabe.CodeInvalidParameterCombo: {"InvalidParameterCombination", 400},
	kurabe.CodeUnsupported:           {"UnsupportedOperation", 400},
	kurabe.CodeThrottled:             {"Throttling", 400},
	kurabe.CodeUnavailable:           {"ServiceUnavailable", 503},
}

// internalMessage is AWS's text for InternalFailure. The cause is in our log, under the request id.
const internalMessage = "The request processing has failed because of an unknown error, exception or failure."

// faultOf says what a client of the service is told about err. The service may be nil.
func (s *Service) faultOf(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	var e *kurabe.Error
	if errors.As(err, &e) && e.Code != kurabe.CodeInternal {
		w, ok := common[e.Code]
		if s != nil {
			if own, has := s.Errors[e.Code]; has {
				w, ok = own, true
			}
		}
		if ok {
			return fault.New(w.Status, w.Code, "%s", e.Message)
		}
	}
	return fault.New(http.StatusInternalServerError, common[kurabe.CodeInternal].Code, internalMessage)
}
