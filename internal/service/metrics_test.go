package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/metrics"
)

// The token is made once, and what a person puts in its place counts.
func TestMetricsToken(t *testing.T) {
	data := t.TempDir()
	first, err := metricsToken(data)
	if err != nil || len(first.Reveal()) < metricsTokenBytesMin {
		t.Fatalf("%d characters, %v", len(first.Reveal()), err)
	}
	if again, err := metricsToken(data); err != nil || again != first {
		t.Errorf("the next start has another one, %v", err)
	}
	path := filepath.Join(data, metricsTokenFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for text, refused := range map[string]bool{"a-token-of-a-person\n": false, "short": true, "": true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := metricsToken(data)
		if (err != nil) != refused || err == nil && got.Reveal() != strings.TrimSpace(text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Nobody reads the page without the token, and nothing is told that may be old.
func TestMetricsPage(t *testing.T) {
	const token = "0123456789abcdef"
	asked, trouble := 0, error(nil)
	p := metricsPage{token: token, ready: func() error { return trouble }, look: func(context.Context) metrics.Page {
		asked++
		return metrics.Page{Following: []kurabe.Following{{Name: "shop", Standbys: true, Synced: true}}}
	}}
	get := func(authorization string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w
	}
	for _, wrong := range []string{"", token, "Bearer", "Bearer ", "Bearer " + token + "x", "Basic " + token} {
		if w := get(wrong); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "shop") || strings.Contains(w.Body.String(), token) {
			t.Errorf("%q: %d %s", wrong, w.Code, w.Body)
		}
	}
	if asked != 0 {
		t.Error("hosts are asked for a stranger")
	}
	if w := get("Bearer " + token); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `kurabe_standby_in_sync{instance="shop"} 1`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	trouble = errors.New("the state is away")
	if w := get("Bearer " + token); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "shop") {
		t.Errorf("of a state that is away: %d %s", w.Code, w.Body)
	}
}
