package api

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// One port answers http and https; one that says nothing, or rubbish, holds up nobody.
func TestSecurePort(t *testing.T) {
	made := httptest.NewTLSServer(nil) // for its certificate
	made.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.URL.Path) })}
	go func() {
		if err := server.Serve(SecurePort(plain, made.TLS)); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	defer server.Close()
	silent, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	rubbish, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer rubbish.Close()
	if _, err := rubbish.Write([]byte{handshakeRecord, 0, 0}); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(made.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for _, scheme := range []string{"http", "https", "http"} {
		for range 2 { // the second on the same connection
			answer, err := client.Post(scheme+"://"+plain.Addr().String()+"/x", "text/plain", strings.NewReader(strings.Repeat("b", 1<<16)))
			if err != nil {
				t.Fatal(scheme, err)
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if string(body) != "hello /x" {
				t.Errorf("%s: %q", scheme, body)
			}
		}
	}
}
