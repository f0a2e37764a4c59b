package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"kurabe"
	"kurabe/internal/hostread"
	"kurabe/internal/volume"
)

// StatusKind asks a host for the Status of one of its proxies.
var StatusKind = hostread.Kind[StatusQuestion, Status]{Name: "proxy-status", Class: hostread.Logs}

// StatusQuestion names a proxy, and how many of its clients are to be described at most.
type StatusQuestion struct {
	Proxy    kurabe.ProxyID
	Sessions int
}

// Client asks the proxy of a folder.
type Client struct{ http http.Client }

// NewClient returns one; it opens nothing.
func NewClient(dir string) *Client {
	path := filepath.Join(dir, runName, controlName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return volume.DialSocket(ctx, path) }
	// Without connections that are kept: the next process has another socket.
	return &Client{http.Client{Timeout: controlTime, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status asks for the state, with up to so many clients.
func (c *Client) Status(ctx context.Context, sessions int) (s Status, err error) {
	raw, err := c.call(ctx, http.MethodGet, "/status?sessions="+strconv.Itoa(sessions))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// Reload has it read its files again.
func (c *Client) Reload(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/reload")
	return err
}

// Stop has it take no more clients and end when the transactions under way have.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/stop")
	return err
}

func (c *Client) call(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://proxy"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, statusBytesMax))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy answers: %s", bytes.TrimSpace(raw))
	}
	return raw, err
}
