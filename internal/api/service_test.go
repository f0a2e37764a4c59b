package api

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/shape"
)

// A form is parsed only after its signature: whoever has no key makes us read and hash it.
func TestUnsignedFormIsNotParsed(t *testing.T) {
	s := New(testConfig(rdsService(testRows()...)))
	var b strings.Builder
	b.WriteString("Action=DescribeDBInstances" + version)
	for n := range query.MaxKeys - 2 {
		b.WriteString("&n" + strconv.Itoa(n) + strings.Repeat(".a", query.MaxDepth-1) + "=")
	}
	form := b.String()
	cost := func(tamper func(*http.Request)) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		send(t, s, form, tamper)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	unsigned := cost(func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "Signature=", "Signature=0", 1))
	})
	// The body is read into a slice that grows until it holds it; its parameters, forty thousand
	// nodes of a tree, are not made.
	if most := uint64(10*len(form) + 1<<20); unsigned > most {
		t.Errorf("%d bytes for an unsigned form of %d", unsigned, len(form))
	}
}

// A credential for one service opens no other one.
func TestFormOfAnotherService(t *testing.T) {
	sts := Service{Name: "sts", Protocols: []Protocol{Query{shape.STS}}, Ops: Table(), NotOffered: func(string) string { return "" }}
	s := New(testConfig(rdsService(testRows()...), sts))
	w := send(t, s, "Action=GetCallerIdentity&Version=2011-06-15", nil)
	if body := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(body, "Credential should be scoped to correct service: &#39;sts&#39;") {
		t.Errorf("%d %s", w.Code, body)
	}
}

func TestPermit(t *testing.T) {
	row := Write("StartDBInstance", func(context.Context, *rds.StartDBInstanceInput) (*rds.StartDBInstanceOutput, error) {
		t.Error("it was done")
		return nil, nil
	})
	row.Permit = func(ctx context.Context, in any) error {
		return fault.New(http.StatusForbidden, "AccessDenied", "%s may not start %s", IdentityFrom(ctx).AccessKeyID, *in.(*rds.StartDBInstanceInput).DBInstanceIdentifier)
	}
	w := send(t, New(testConfig(rdsService(row))), "Action=StartDBInstance&DBInstanceIdentifier=x"+version, nil)
	if body := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(body, testKey+" may not start x") {
		t.Errorf("%d %s", w.Code, body)
	}
}
