package hostlink

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"kurabe"
	"kurabe/internal/pki"
)

// elected says whether this server is the planner's, and since when.
func (s *Server) elected() (Election, bool) {
	if s.Elected == nil {
		return Election{Since: s.started}, true
	}
	return s.Elected()
}

// servers are the links of all servers, where there are several.
func (s *Server) servers() []string {
	var list []string
	for _, h := range s.View.Servers() {
		list = append(list, h.Value.Server.Link)
	}
	return list
}

// planner is where the elected planner's links are, "" when nobody knows.
func (s *Server) planner() string {
	h, ok := s.View.JoinedHost(s.View.Planner())
	if !ok || h.Value.Server == nil {
		return ""
	}
	return h.Value.Server.Link
}

// misdirect sends a host to the planner's server.
func (s *Server) misdirect(w http.ResponseWriter) {
	m := misdirected{s.planner(), s.servers()}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusMisdirectedRequest)
	_ = json.NewEncoder(w).Encode(errorAnswer{Error: m.Error(), Planner: m.planner, Servers: m.servers})
}

// server lets servers of the service in that were admitted and not removed since.
func (s *Server) server(next func(http.ResponseWriter, *http.Request, kurabe.HostID)) http.Handler {
	return s.letIn(pki.PartyServer, func(id kurabe.HostID) bool {
		h, ok := s.View.JoinedHost(id)
		return ok && h.Value.Server != nil && !h.Value.Gone
	}, next)
}

func (s *Server) enter(w http.ResponseWriter, r *http.Request, id kurabe.HostID) {
	if s.Enter == nil {
		refuse(w, http.StatusForbidden, errors.New("this service accepts no further server"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTime)
	defer cancel()
	a, err := s.Enter(ctx, id)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	answer(w, a)
}

// Enter asks, as a server that was let in, for what a server needs. It may be asked again.
func Enter(ctx context.Context, server string, roots *x509.CertPool, identity tls.Certificate) (EnterAnswer, error) {
	client := clientFor(func(chain []*x509.Certificate) error {
		_, err := pki.VerifyParty(chain, roots, pki.PartyServer)
		return err
	}, func() *tls.Certificate { return &identity }, nil)
	defer client.CloseIdleConnections()
	var a EnterAnswer
	return a, post(ctx, client, server, enterPath, "", struct{}{}, &a)
}

// post sends one request to a server, of a life of a host or "", and decodes its answer into out
// if that is not nil.
func post(ctx context.Context, client *http.Client, server, path, life string, body, out any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+server+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	q.Header.Set(lifeHeader, life)
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if err := failed(a); err != nil {
		return err
	}
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(a.Body, 64<<10)) // so that the connection is used again
		return err
	}
	if err := json.NewDecoder(io.LimitReader(a.Body, bodyBytesMax)).Decode(out); err != nil {
		return fmt.Errorf("the service's answer: %w", err)
	}
	return nil
}
