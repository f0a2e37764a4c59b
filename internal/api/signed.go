package api

import (
	"encoding/json"
	"net/http"

	"kurabe/internal/aws/query"
	"kurabe/internal/aws/sigv4"
)

// Signed makes a handler of what Kurabe offers beside AWS's own APIs: a GET with
// a SigV4 signature for the service "rds", answered in JSON. Errors have the
// query protocol's form, so one client code reads them.
func (s *Server) Signed(answer func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, action: "Describe " + r.URL.Path}
		body, err := s.answerSigned(w, r, c, answer)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			f := faultOf(err)
			c.status, c.err, body = f.Status, err, (*query.Model)(nil).EncodeFault(f, c.id)
			w.Header().Set("Content-Type", query.ContentType)
		}
		w.Header().Set("x-amzn-RequestId", c.id)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(c.status)
		_, _ = w.Write(body)
		s.log(r.Context(), c, nil)
	})
}

func (s *Server) answerSigned(w http.ResponseWriter, r *http.Request, c *call, answer func(r *http.Request) (any, error)) ([]byte, error) {
	body, err := sigv4.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	signer, err := s.verifier.Verify(r, body, "rds")
	if err != nil {
		return nil, err
	}
	c.accessKeyID = signer.AccessKeyID
	out, err := answer(r)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(out, "", "  ")
}
