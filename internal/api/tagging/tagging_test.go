package tagging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/control/scope"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// testService has three subnet groups, two of them with tags.
func testService(t *testing.T) *api.Server {
	t.Helper()
	kv := store.NewMemory()
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = view.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	c := control.New(scope.Scope{
		KV: kv, View: view, Region: "us-east-1", Account: "000000000000", Zones: []string{"us-east-1a", "us-east-1b"}, Now: time.Now,
	}, control.Config{})
	for name, tags := range map[string][]kurabe.Tag{
		"one": {{Key: "team", Value: "a"}, {Key: "stage"}}, "two": {{Key: "team", Value: "b"}}, "none": nil,
	} {
		if _, err := c.CreateSubnetGroup(t.Context(), name, "d", []string{"subnet-us-east-1a", "subnet-us-east-1b"}, tags); err != nil {
			t.Fatal(err)
		}
	}
	return api.New(api.Config{
		Credentials: func(string) (logkey.Secret, bool) { return "secret", true }, Region: "us-east-1", Account: "000000000000",
		Services: []api.Service{API(c)}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// ask sends a request that is signed for a service in a region.
func ask(t *testing.T, s *api.Server, service, region, action, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://h/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "ResourceGroupsTaggingAPI_20170126."+action)
	sum := sha256.Sum256([]byte(body))
	who := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestAnswers(t *testing.T) {
	s := testService(t)
	const arn = "arn:aws:rds:us-east-1:000000000000:subgrp:"
	one := `{"ResourceARN":"` + arn + `one","Tags":[{"Key":"team","Value":"a"},{"Key":"stage","Value":""}]}`
	two := `{"ResourceARN":"` + arn + `two","Tags":[{"Key":"team","Value":"b"}]}`
	page := func(token string, list ...string) string {
		return `{"PaginationToken":"` + token + `","ResourceTagMappingList":[` + strings.Join(list, ",") + `]}`
	}
	for _, tc := range []struct{ name, action, body, want string }{
		{"all", "GetResources", `{}`, page("", one, two)},
		{"no body", "GetResources", ``, page("", one, two)},
		{"a type", "GetResources", `{"ResourceTypeFilters":["rds:db","rds:subgrp"]}`, page("", one, two)},
		{"all of the service", "GetResources", `{"ResourceTypeFilters":["rds"]}`, page("", one, two)},
		{"another type", "GetResources", `{"ResourceTypeFilters":["rds:db"]}`, page("")},
		{"another service", "GetResources", `{"ResourceTypeFilters":["ec2:instance"]}`, page("")},
		{"a key", "GetResources", `{"TagFilters":[{"Key":"stage"}]}`, page("", one)},
		{"a value of several", "GetResources", `{"TagFilters":[{"Key":"team","Values":["b","c"]}]}`, page("", two)},
		{"each filter", "GetResources", `{"TagFilters":[{"Key":"team","Values":["b"]},{"Key":"stage"}]}`, page("")},
		{"by name, one without tags", "GetResources", `{"ResourceARNList":["` + arn + `two","` + arn + `none"]}`, page("", two)},
		{"the first page", "GetResources", `{"ResourcesPerPage":1}`, page(arn+"one", one)},
		{"the last page", "GetResources", `{"ResourcesPerPage":1,"PaginationToken":"` + arn + `one"}`, page("", two)},
		{"keys", "GetTagKeys", `{}`, `{"PaginationToken":"","TagKeys":["stage","team"]}`},
		{"values", "GetTagValues", `{"Key":"team"}`, `{"PaginationToken":"","TagValues":["a","b"]}`},
	} {
		if w := ask(t, s, "tagging", "us-east-1", tc.action, tc.body); w.Code != 200 || w.Body.String() != tc.want || w.Header().Get("Content-Type") != "application/x-amz-json-1.1" {
			t.Errorf("%s: %d %s, want %s", tc.name, w.Code, w.Body, tc.want)
		}
	}
	if w := ask(t, s, "tagging", "eu-west-1", "GetResources", `{"ResourceARNList":["`+strings.ReplaceAll(arn, "us-east-1", "eu-west-1")+`two"]}`); !strings.Contains(w.Body.String(), "arn:aws:rds:eu-west-1:000000000000:subgrp:two") {
		t.Errorf("of another region: %s", w.Body)
	}
}

func TestRefusals(t *testing.T) {
	s := testService(t)
	long := strings.TrimSuffix(strings.Repeat(`"a",`, 101), ",")
	for _, tc := range []struct {
		name, service, action, body string
		status                      int
		code                        string
	}{
		{"another service's signature", "rds", "GetResources", `{}`, 404, "UnknownOperationException"},
		{"an action that is not there", "tagging", "StartReportCreation", `{}`, 400, "UnsupportedOperation"},
		{"no JSON", "tagging", "GetResources", `{`, 400, "SerializationException"},
		{"two bodies", "tagging", "GetResources", `{}{}`, 400, "SerializationException"},
		{"an unknown member", "tagging", "GetResources", `{"Sort":"up"}`, 400, "SerializationException"},
		{"policies", "tagging", "GetResources", `{"IncludeComplianceDetails":true}`, 400, "InvalidParameterException"},
		{"names and a filter", "tagging", "GetResources", `{"ResourceARNList":["a"],"ResourceTypeFilters":["rds"]}`, 400, "InvalidParameterException"},
		{"too many names", "tagging", "GetResources", `{"ResourceARNList":[` + long + `]}`, 400, "InvalidParameterException"},
		{"too large a page", "tagging", "GetResources", `{"ResourcesPerPage":101}`, 400, "InvalidParameterException"},
		{"a filter without a key", "tagging", "GetResources", `{"TagFilters":[{"Values":["a"]}]}`, 400, "InvalidParameterException"},
		{"no resource", "tagging", "TagResources", `{"Tags":{"a":"b"}}`, 400, "InvalidParameterException"},
		{"no tag", "tagging", "TagResources", `{"ResourceARNList":["a"]}`, 400, "InvalidParameterException"},
		{"no key", "tagging", "UntagResources", `{"ResourceARNList":["a"]}`, 400, "InvalidParameterException"},
		{"values of no key", "tagging", "GetTagValues", `{}`, 400, "InvalidParameterException"},
	} {
		w := ask(t, s, tc.service, "us-east-1", tc.action, tc.body)
		var got struct {
			Type string `json:"__type"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tc.status || got.Type != tc.code {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}

// Each resource is changed or named among the failures, in the sender's own region.
func TestChanges(t *testing.T) {
	s := testService(t)
	const one, gone = "arn:aws:rds:eu-west-1:000000000000:subgrp:one", "arn:aws:rds:eu-west-1:000000000000:subgrp:gone"
	list := `"ResourceARNList":["` + gone + `","` + one + `","arn:aws:s3:::b"]`
	for _, tc := range []struct{ action, body, tags string }{
		{"TagResources", `{` + list + `,"Tags":{"team":"c","new":"x"}}`, `[{"Key":"team","Value":"c"},{"Key":"stage","Value":""},{"Key":"new","Value":"x"}]`},
		{"UntagResources", `{` + list + `,"TagKeys":["team","stage","absent"]}`, `[{"Key":"new","Value":"x"}]`},
	} {
		w := ask(t, s, "tagging", "eu-west-1", tc.action, tc.body)
		var got struct {
			FailedResourcesMap map[string]struct {
				StatusCode              int
				ErrorCode, ErrorMessage string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || len(got.FailedResourcesMap) != 2 {
			t.Fatalf("%s: %d %s", tc.action, w.Code, w.Body)
		}
		if f := got.FailedResourcesMap[gone]; f.StatusCode != 400 || f.ErrorCode != "InvalidParameterException" || !strings.Contains(f.ErrorMessage, "gone") {
			t.Errorf("%s: %+v", tc.action, got.FailedResourcesMap)
		}
		now := ask(t, s, "tagging", "eu-west-1", "GetResources", `{"ResourceARNList":["`+one+`"]}`)
		if !bytes.Contains(now.Body.Bytes(), []byte(`"Tags":`+tc.tags)) {
			t.Errorf("%s: %s", tc.action, now.Body)
		}
	}
}

// Nothing is done for a body that was not signed.
func TestSignature(t *testing.T) {
	s := testService(t)
	r := httptest.NewRequest(http.MethodPost, "http://h/", strings.NewReader(`{"ResourceARNList":["a"]}`))
	r.Header.Set("X-Amz-Target", "ResourceGroupsTaggingAPI_20170126.GetResources")
	sum := sha256.Sum256([]byte(`{}`))
	who := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "tagging", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "SignatureDoesNotMatch") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
