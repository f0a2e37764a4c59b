package service

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kurabe/internal/logkey"
	"kurabe/internal/metrics"
	"kurabe/internal/volume"
)

// metricsTokenFile holds what a scraper shows. It opens nothing but the page of metrics, so a
// scraper need not hold the root credentials.
const metricsTokenFile = "metrics-token"

// metricsTokenBytesMin is what a token must have that a person has put there.
const metricsTokenBytesMin = 16

// metricsToken returns the token of the data folder, which is made at the first start.
func metricsToken(data string) (logkey.Secret, error) {
	path := filepath.Join(data, metricsTokenFile)
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token := rand.Text()
		return logkey.Secret(token), volume.AtomicWrite(path, []byte(token+"\n"), 0o600)
	case err != nil:
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < metricsTokenBytesMin {
		return "", fmt.Errorf("%s holds fewer than %d characters; remove it, and the next start makes another", path, metricsTokenBytesMin)
	}
	return logkey.Secret(token), nil
}

// metricsPage serves the page to who shows the token. ready is why nothing can be told now.
type metricsPage struct {
	token logkey.Secret
	ready func() error
	look  func(context.Context) metrics.Page
}

// ServeHTTP implements http.Handler.
func (p metricsPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || subtle.ConstantTimeCompare([]byte(shown), []byte(p.token.Reveal())) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="kurabe metrics"`)
		say(w, http.StatusUnauthorized, "show the token of the file "+metricsTokenFile+" in the data folder: Authorization: Bearer TOKEN")
		return
	}
	if p.ready() != nil { // what is known may be old
		say(w, http.StatusServiceUnavailable, "the service does not follow its state now")
		return
	}
	page := p.look(r.Context())
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = metrics.Render(w, page, time.Now()) // a scraper that has gone is not our failure
}

// say answers a scraper, which is no client of AWS, with a line of text.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n")
}
