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
		c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, action: r.URL.Path, service: s.byName["rds"], reads: r.Method == http.MethodGet}
		body, err := s.answerSigned(w, r, c, answer)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			f := c.service.faultOf(err)
			c.status, c.err, body = f.Status, err, query.EncodeFault(nil, f, c.id)
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

// SignedFile is Signed for an answer that write sends itself, byte by byte; what it says
// before the first one is told as ever, later the answer is cut off.
func (s *Server) SignedFile(write func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, action: r.URL.Path, service: s.byName["rds"], reads: r.Method == http.MethodGet}
		sent := &counted{ResponseWriter: w}
		w.Header().Set("x-amzn-RequestId", c.id)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/octet-stream")
		_, err := s.answerSigned(w, r, c, func(r *http.Request) (any, error) { return nil, write(sent, r) })
		if err != nil {
			f := c.service.faultOf(err)
			c.status, c.err = f.Status, err
			if sent.begun {
				s.log(r.Context(), c, nil)
				panic(http.ErrAbortHandler) // the client must not take it for whole
			}
			w.Header().Set("Content-Type", query.ContentType)
			w.WriteHeader(c.status)
			_, _ = w.Write(query.EncodeFault(nil, f, c.id))
		}
		s.log(r.Context(), c, nil)
	})
}

// counted knows whether an answer has begun.
type counted struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.begun = true
	return c.ResponseWriter.Write(b)
}
