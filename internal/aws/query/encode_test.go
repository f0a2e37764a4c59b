package query

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/shape"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const requestID = "b8a1c0de-0000-4000-8000-000000000001"

func TestEncodeGolden(t *testing.T) {
	cases := []struct {
		name string
		got  []byte
	}{
		{"create-instance", EncodeResult(shape.RDS, "CreateDBInstance", requestID, &rds.CreateDBInstanceOutput{DBInstance: goldenInstance()})},
		{"describe-nothing", EncodeResult(shape.RDS, "DescribeDBInstances", requestID, &rds.DescribeDBInstancesOutput{})},
		{"no-output", EncodeResult(shape.RDS, "DescribeDBInstances", requestID, (*rds.DescribeDBInstancesOutput)(nil))},
		{"no-result", EncodeResult(shape.RDS, "AddTagsToResource", requestID, &rds.AddTagsToResourceOutput{})},
		{"empty-result", EncodeResult(shape.RDS, "DeregisterDBProxyTargets", requestID, &rds.DeregisterDBProxyTargetsOutput{})},
		{"map", EncodeResult(shape.RDS, "CreateIntegration", requestID, &rds.CreateIntegrationOutput{
			AdditionalEncryptionContext: map[string]string{"b": "<2>", "a": "1"}})},
		{"sts", EncodeResult(shape.STS, "GetCallerIdentity", requestID, &sts.GetCallerIdentityOutput{Account: aws.String("000000000000")})},
		{"sender-fault", EncodeFault(shape.RDS, fault.New(404, "DBInstanceNotFound", "DBInstance <a&b> not found."), requestID)},
		{"receiver-fault", EncodeFault(nil, fault.New(500, "InternalFailure", "x"), requestID)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := indent(t, c.got)
			path := filepath.Join("testdata", "encode", c.name+".xml")
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || text != string(want) {
				t.Errorf("%v; got\n%s\nwant\n%s", err, text, want)
			}
		})
	}
}

func goldenInstance() *types.DBInstance {
	return &types.DBInstance{
		DBInstanceIdentifier: aws.String("orders"),
		AllocatedStorage:     aws.Int32(20),
		MultiAZ:              aws.Bool(false),
		InstanceCreateTime:   aws.Time(time.Date(2026, 5, 6, 8, 9, 10, 123456789, time.FixedZone("JST", 9*3600))),
		Endpoint:             &types.Endpoint{Address: aws.String("127.66.0.7"), Port: aws.Int32(5432)},
		DBParameterGroups: []types.DBParameterGroupStatus{
			{DBParameterGroupName: aws.String("default.postgres15"), ParameterApplyStatus: aws.String("in-sync")},
		},
		DBSecurityGroups:             []types.DBSecurityGroupMembership{{Status: aws.String("active")}},
		EnabledCloudwatchLogsExports: []string{"postgresql"},
		TagList:                      []types.Tag{{Key: aws.String("比べ"), Value: aws.String("<&>'\"\n")}, {Key: aws.String("k"), Value: aws.String("")}},
		DomainMemberships:            []types.DomainMembership{},
		ActivityStreamStatus:         types.ActivityStreamStatusStopped,
	}
}

// indent breaks the document between tags, so that a difference is one line.
func indent(t *testing.T, doc []byte) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(doc)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, doc)
		}
	}
	return strings.ReplaceAll(string(doc), "><", ">\n<") + "\n"
}
