package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/rds"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A compressed body is read by every service, and a small one that becomes large is refused.
func TestCompressedBody(t *testing.T) {
	marker := ""
	s := New(testConfig(rdsService(Read("DescribeDBInstances", func(_ context.Context, in *rds.DescribeDBInstancesInput) (*rds.DescribeDBInstancesOutput, error) {
		marker = *in.Marker
		return nil, nil
	}))))
	form := "Action=DescribeDBInstances" + version + "&Marker="
	for _, c := range []struct {
		name, encoding, body string
		status               int
		text                 string
	}{
		{"gzip", "gzip", zipped(t, form+"x"), 200, ""},
		{"the largest", "gzip", zipped(t, form+strings.Repeat("x", 1<<20-len(form))), 200, ""},
		{"a byte more", "gzip", zipped(t, form+strings.Repeat("x", 1<<20-len(form)+1)), 413, "RequestEntityTooLarge"},
		{"much more", "gzip", zipped(t, strings.Repeat("x", 100<<20)), 413, "RequestEntityTooLarge"},
		{"no gzip", "gzip", form + "x", 400, "MalformedInput"},
		{"cut off", "gzip", zipped(t, form)[:30], 400, "MalformedInput"},
		{"another encoding", "br", form + "x", 415, "UnsupportedMediaType"},
	} {
		t.Run(c.name, func(t *testing.T) {
			marker = ""
			w := sendAs(t, s, "rds", c.body, func(r *http.Request) { r.Header.Set("Content-Encoding", c.encoding) }, nil)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || (c.status == 200) != (marker != "") {
				t.Errorf("%d %.300s", w.Code, w.Body)
			}
		})
	}
}
