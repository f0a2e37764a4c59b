package api

import (
	"net/http"

	"kurabe/internal/aws/query"
	"kurabe/internal/aws/sigv4"
)

// Signed makes a handler of an answer that is no document: a request with a SigV4 signature for
// the service "rds", whose answer write sends byte by byte. An error before the first byte has the
// query protocol's form; after it the answer is cut off.
func (s *Server) Signed(write func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, action: r.URL.Path, service: s.byName["rds"], reads: r.Method == http.MethodGet}
		sent := &counted{ResponseWriter: w}
		w.Header().Set("x-amzn-RequestId", c.id)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := s.answerSigned(sent, r, c, write); err != nil {
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

func (s *Server) answerSigned(w http.ResponseWriter, r *http.Request, c *call, write func(w http.ResponseWriter, r *http.Request) error) error {
	body, err := sigv4.ReadBody(w, r, sigv4.MaxBodyBytes)
	if err != nil {
		return err
	}
	signer, err := s.verifier.Verify(r, body, "rds")
	if err != nil {
		return err
	}
	c.accessKeyID = signer.AccessKeyID
	return write(w, r)
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
